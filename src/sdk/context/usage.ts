/**
 * Brings reported usage to the calibration: of the request just made (a hook on `provider:response`), and of the requests of
 * earlier runs, which the log has and the capability `session.usages` tells. So a restarted session counts as the old one.
 */
import { type Coordinator, isObject, type JsonObject } from "../mod.ts";
import type { Calibration } from "./calibration.ts";

/** One logged usage: messages of the history when the request was made, and `usage.input_tokens`. */
interface Logged {
  readonly messages: number;
  readonly input_tokens: number;
}

/** See the top of the file. Does nothing unless it is switched on. */
export class ReportedUsage {
  readonly #coordinator: Pick<Coordinator, "getCapability">;
  readonly #on: boolean;
  #asked: { view: number; extras: number } | null = null;
  /** Logged usages by the length of the history then; taken once, for the history the session begins with. */
  #logged: Map<number, number> | null = null;
  /** Requests of earlier runs, whose tool schemas are not known before the first request of this one. */
  #earlier: { view: number; reported: number }[] = [];

  constructor(coordinator: Pick<Coordinator, "getCapability">, on: boolean) {
    this.#coordinator = coordinator;
    this.#on = on;
  }

  /** Reads the usages that were logged, the first time a history is set. */
  begin(): void {
    const first = this.#logged === null;
    this.#logged = new Map();
    if (!this.#on || !first) return;
    const told = this.#coordinator.getCapability("session.usages");
    const usages: unknown = typeof told === "function" ? told() : [];
    if (!Array.isArray(usages)) return; // a promise, when this module is a guest: it starts from its own state
    for (const usage of usages.filter(isLogged)) this.#logged.set(usage.messages, usage.input_tokens);
  }

  /** Takes up the usage of the request that was made with so many messages, if one was. */
  recall(messages: number, view: () => number): void {
    const reported = this.#logged?.get(messages);
    if (reported !== undefined) this.#earlier.push({ view: view(), reported });
  }

  /** Forgets requests that were not learned from yet. */
  forget(): void {
    this.#earlier = [];
    this.#asked = null;
  }

  /** Learns from the requests of earlier runs; their tools are taken to be those of the first request now. */
  learn(tools: number, calibration: Calibration): void {
    for (const { view, reported } of this.#earlier.splice(0)) {
      calibration.observe({ view, extras: tools, reported });
    }
  }

  /** Forgets a request whose answer told no usage. */
  dismiss(): void {
    this.#asked = null;
  }

  /** Says what the request that is being made is estimated at. */
  asked(view: number, extras: number): void {
    if (this.#on) this.#asked = { view, extras };
  }

  /** Learns from the answer to it; once. */
  note(data: JsonObject, calibration: Calibration): void {
    const { usage, inner } = data;
    // A module's own call, such as one for a summary, says nothing about the view.
    if (inner === true || !this.#asked || !isObject(usage) || typeof usage.input_tokens !== "number") {
      return;
    }
    calibration.observe({ ...this.#asked, reported: usage.input_tokens });
    this.#asked = null;
  }
}

function isLogged(value: unknown): value is Logged {
  return isObject(value) && typeof value.messages === "number" && typeof value.input_tokens === "number";
}
