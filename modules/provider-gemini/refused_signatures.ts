/** Signatures of thoughts that the API refuses to take back, such as those of another model. */
import { isObject } from "preamp/base";
import type { Content } from "./client_types.ts";
import { isBeforeGemini3 } from "./mod.ts";
import { NO_SIGNATURE } from "./request.ts";

const REFUSAL = /(?:corrupted|invalid) thought.?signature|thought.?signature is not valid/i;

/** The signatures that the API refused in a session. */
export class RefusedSignatures {
  readonly #refused = new Set<string>();

  /**
   * Notes all signatures of a refused request. Returns false when the error is another one, or the request
   * has no signature.
   */
  learn(error: unknown, contents: readonly Content[]): boolean {
    if (!isObject(error) || error.status !== 400 || !REFUSAL.test(String(error.message))) return false;
    const sent = contents.flatMap(({ parts }) =>
      parts.flatMap(({ thoughtSignature }) => thoughtSignature ?? [])
    );
    const signatures = sent.filter((signature) => signature !== NO_SIGNATURE);
    for (const signature of signatures) this.#refused.add(signature);
    return signatures.length > 0;
  }

  /** Returns contents without refused signatures. From Gemini 3 on, a call needs one: that of no check. */
  without(contents: Content[], model: string): Content[] {
    if (this.#refused.size === 0) return contents;
    const unchecked = isBeforeGemini3(model) ? {} : { thoughtSignature: NO_SIGNATURE };
    return contents.map(({ role, parts }) => ({
      role,
      parts: parts.flatMap((part) => {
        const { thoughtSignature, ...rest } = part;
        if (thoughtSignature === undefined || !this.#refused.has(thoughtSignature)) return part;
        if (part.functionCall) return { ...rest, ...unchecked };
        return part.text === "" ? [] : rest;
      }),
    })).filter(({ parts }) => parts.length > 0);
  }
}
