/**
 * The request that nearly every client sends, checked by hand: `schemas.ts` checks the same by zod for five times as much. Says yes
 * or nothing; what it does not know, and everything that is wrong, is zod's to judge and to tell.
 */
import type { RunRequest } from "../../runs/types.ts";
import { isObject } from "../../sdk/json.ts";

/** What a body of `POST /v1/runs` is once it was checked. */
type CheckedRequest = RunRequest & { background?: boolean };

/** Field → whether its value is one that needs no further look. */
const FIELDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  prompt: (value) => typeof value === "string" && /\S/.test(value),
  plan: (value) => typeof value === "string" || isObject(value),
  plan_ref: isText,
  session_id: isText,
  background: (value) => typeof value === "boolean",
  metadata: isObject,
};

/** Returns a request that is right, and has none but the usual fields; undefined for any other value. */
export function validateCommonRequest(value: unknown): CheckedRequest | undefined {
  if (!isObject(value) || !Object.hasOwn(value, "prompt")) return undefined;
  for (const key of Object.keys(value)) {
    const isRight = Object.hasOwn(FIELDS, key) ? FIELDS[key] : undefined;
    if (isRight === undefined || !isRight(value[key])) return undefined;
  }
  if (Object.hasOwn(value, "plan") && Object.hasOwn(value, "plan_ref")) return undefined;
  return { ...value } as unknown as CheckedRequest; // just checked, field by field
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}
