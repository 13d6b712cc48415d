/**
 * Brings reported usage to the calibration: of the last request, which the capability `session.last_usage` tells when the next
 * one is made, and of the requests of earlier runs, which the log has and the capability `session.usages` tells. So a restarted
 * session counts as the old one.
 */
import { type Coordinator, isObject } from "../mod.ts";
import type { Calibration } from "./token_calibration.ts";

/** One logged usage: messages of the history when the request was made, and `usage.input_tokens`. */
interface Logged {
  readonly messages: number;
  readonly input_tokens: number;
}

/** What the last answer to the loop reported: its number in the session, from 1, and `usage.input_tokens`. */
interface Reported {
  readonly answer: number;
  readonly input_tokens: number;
}

/** See the top of the file. Does nothing unless it is switched on. */
export class ReportedUsage {
  readonly #coordinator: Pick<Coordinator, "getCapability">;
  readonly #on: boolean;
  #asked: { view: number; extras: number } | null = null;
  /** Number of the last answer that was looked at. */
  #answer = 0;
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
    if (this.#earlier.length === 0) return;
    for (const { view, reported } of this.#earlier) calibration.observe({ view, extras: tools, reported });
    this.#earlier = [];
  }

  /** Learns from the answer to the last request, when there was one that told its usage. A promise, where this module is a guest. */
  learnLast(calibration: Calibration): Promise<void> | void {
    if (!this.#on) return;
    const told = this.#coordinator.getCapability("session.last_usage");
    const last: unknown = typeof told === "function" ? told() : null;
    if (last instanceof Promise) {
      return last.then((reported: unknown) => this.#learnFrom(reported, calibration));
    }
    this.#learnFrom(last, calibration);
  }

  #learnFrom(last: unknown, calibration: Calibration): void {
    const asked = this.#asked;
    this.#asked = null; // also when its answer told no usage
    if (!isReported(last) || last.answer === this.#answer) return;
    this.#answer = last.answer;
    if (asked) calibration.observe({ ...asked, reported: last.input_tokens });
  }

  /** Says what the request that is being made is estimated at. */
  asked(view: number, extras: number): void {
    if (this.#on) this.#asked = { view, extras };
  }
}

function isReported(value: unknown): value is Reported {
  return isObject(value) && typeof value.answer === "number" && typeof value.input_tokens === "number";
}

function isLogged(value: unknown): value is Logged {
  return isObject(value) && typeof value.messages === "number" && typeof value.input_tokens === "number";
}
