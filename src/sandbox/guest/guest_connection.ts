/**
 * The host's end of the wire: opens calls, answers what a guest asks inside them, and ends a guest that breaks a rule. Knows
 * frames and bounds; what is asked is for the {@link CallHost} of each call to know.
 */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { isObject, toPlain } from "../../sdk/json.ts";
import { type Channel, exitError, type GuestExit } from "../channel.ts";
import type { FromGuest, Notification, SerializedError, SessionDelta, Shape, ToGuest } from "../protocol.ts";
import { NOTE_CREDIT } from "../protocol.ts";
import { decodeGuestError, encodeError } from "../error_codec.ts";

/** What a call is opened for: it answers what the guest asks while the call is open. */
export interface CallHost {
  /** What changed in the session since the guest was told last. */
  view(): SessionDelta | undefined;
  /** Does what the guest did without waiting. @throws {TypeError} for an effect that is none. */
  apply(effects: readonly Notification[]): void;
  /** Answers. `signal` aborts when the guest no longer wants it; `onPiece` sends a piece ahead. */
  request(
    target: string,
    method: string,
    args: readonly unknown[],
    options: GuestRequestOptions,
  ): Promise<unknown>;
}

/** How an answer is wanted. */
export interface GuestRequestOptions {
  readonly signal: AbortSignal;
  onPiece(value: unknown): void;
}

/** How a call is made. */
export interface CallOptions {
  readonly host: CallHost;
  /** Aborts the call in the guest; a guest that does not end it within `grace_ms` is ended itself. */
  readonly signal?: AbortSignal | undefined;
  readonly grace_ms?: number;
  /** Milliseconds the call may take, then the guest is ended. Absent: as long as it likes. */
  readonly deadline_ms?: number | undefined;
  /** Bytes of the answer with all its pieces. */
  readonly max_bytes: number;
  /** Takes the pieces of the result. */
  readonly onNote?: ((value: unknown) => void) | undefined;
}

/** What a guest is made with. */
export interface GuestOptions {
  /** What messages call the module. */
  readonly name: string;
  /** Takes lines of the module's console. */
  onLog(level: "info" | "warning" | "error", text: string): void;
  /** Told why a guest was ended that we ended for a breach. */
  onViolation(message: string): void;
}

interface OpenCall {
  readonly options: CallOptions;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  bytes: number;
  /** What the guest asked and was not answered yet. */
  readonly requests: Map<number, AbortController>;
}

/** Bytes of frames that belong to no answer: what the guest asks, its effects, its console. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Bytes of a frame while no call is open: a line of console. */
const MAX_IDLE_BYTES = 64 * 1024;
/** Questions under way at once in all calls of a guest. */
const MAX_REQUESTS = 256;
/** Questions under way from which on nothing more is read: what the guest says next waits in its own pipe. */
const BUSY_REQUESTS = 32;
const MAX_NOTIFICATIONS = 512;
/** Bytes of console that a guest may write in its life. */
const MAX_LOG_BYTES = 4 * 1024 * 1024;
/** One-way messages that are taken before the guest is told that it may send more. */
const CREDIT_STEP = NOTE_CREDIT / 2;
/** Errors of the host that a guest can give back. */
const MAX_ERRORS = 64;

/** One guest that runs. */
export class GuestConnection {
  readonly #channel: Channel;
  readonly #options: GuestOptions;
  readonly #open = new Map<string, OpenCall>();
  readonly #errors = new Map<number, unknown>();
  #starting: { resolve(shape: Shape): void; reject(error: unknown): void } | null = null;
  #exit: GuestExit | null = null;
  #next_call = 1;
  #next_error = 1;
  #pending_requests = 0;
  /** Resolves with the next answer. */
  #next_answer = Promise.withResolvers<void>();
  /** Highest number of a question. */
  #last_request = 0;
  /** Questions in all that the guest may still say it no longer wants. */
  #abandonable = 0;
  #notes = 0;
  #log_bytes = 0;

  constructor(channel: Channel, options: GuestOptions) {
    this.#channel = channel;
    this.#options = options;
    channel.listen({
      take: (text) => this.#enter(text),
      limit: () => this.#limit(),
      ready: () => this.#pending_requests < BUSY_REQUESTS ? undefined : this.#next_answer.promise,
    });
    void channel.exited.then((exit) => this.#handleExit(exit));
  }

  /** How it ended; null while it runs. */
  get death(): GuestExit | null {
    return this.#exit;
  }

  /** Links a bundle; resolves to what it exports. @throws What the module's top level threw; {@link exitError}. */
  async start(code: string, uses: readonly string[], deadline_ms: number): Promise<Shape> {
    if (this.#exit) throw exitError(this.#exit, `module "${this.#options.name}"`);
    const { promise, resolve, reject } = Promise.withResolvers<Shape>();
    this.#starting = { resolve, reject };
    this.#channel.watch(deadline_ms);
    this.#send({ t: "start", code, uses });
    const timer = setTimeout(() => {
      const detail = `its top level was not done within ${deadline_ms / 1000} s`;
      this.#kill({ cause: "timeout", detail });
    }, deadline_ms);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Calls the module (`ref` 0) or one of its objects.
   * @throws What the guest threw; {@link exitError} when it ended first.
   */
  async call(
    ref: number,
    method: string,
    args: readonly unknown[],
    options: CallOptions,
  ): Promise<unknown> {
    if (this.#exit) throw exitError(this.#exit, `module "${this.#options.name}"`);
    const { signal, deadline_ms, grace_ms = 1_000, host } = options;
    signal?.throwIfAborted();
    const view = host.view();
    const id = `${this.#next_call++}.${Math.random().toString(36).slice(2, 12)}`;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const open: OpenCall = { options, resolve, reject, bytes: 0, requests: new Map() };
    this.#open.set(id, open);
    this.#channel.watch(deadline_ms === undefined ? 0 : deadline_ms + 2 * grace_ms);
    this.#send({ t: "call", call: id, ref, method, args, ...(view ? { view } : {}) });
    const watches = new CallTimers((detail) => this.#kill({ cause: "timeout", detail }));
    if (deadline_ms !== undefined) watches.after(deadline_ms, `no answer within ${deadline_ms / 1000} s`);
    const abort = () => {
      this.#send({ t: "abort", call: id, reason: this.#encode(signal!.reason) });
      watches.after(grace_ms, "it did not end a call that was aborted");
    };
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await promise;
    } finally {
      watches.clear();
      signal?.removeEventListener("abort", abort);
      if (deadline_ms !== undefined && this.#open.size === 0 && !this.#exit) this.#channel.watch(0); // it may rest
    }
  }

  /** Tells the session's cancellation. */
  sendCancellation(state: SessionDelta["cancellation"]): void {
    this.#send({ t: "cancellation", state });
  }

  /** Ends it. */
  async kill(death: GuestExit): Promise<void> {
    await this.#channel.kill(death);
  }

  /** Ends it while nothing waits for that: what goes wrong with it is logged. */
  #kill(death: GuestExit): void {
    this.kill(death).catch((error) => {
      const { name, onViolation } = this.#options;
      onViolation(`Module "${name}" could not be ended: ${errorMessage(error)}`);
    });
  }

  #send(frame: ToGuest): void {
    if (this.#exit === null) this.#channel.send(textOf(frame));
  }

  /** A guest may say what its open calls allow, and no more. */
  #limit(): number {
    if (this.#starting) return MAX_REQUEST_BYTES;
    if (this.#open.size === 0) return MAX_IDLE_BYTES;
    let most = 0;
    for (const { options } of this.#open.values()) most = Math.max(most, options.max_bytes);
    return most + MAX_IDLE_BYTES; // the frame around the answer
  }

  /**
   * The boundary: every text of a guest enters the host here, and only here. Whatever comes of it, at once or later, ends this guest
   * at the most: nothing is thrown, and no promise is left whose rejection is not handled.
   */
  #enter(text: string): void {
    const refuse = (error: unknown) =>
      this.#violation(`a frame that cannot be taken: ${errorMessage(error)}`);
    try {
      this.#take(text)?.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  /** Returns a promise for a frame that takes time: {@link #enter} handles its rejection. */
  #take(text: string): Promise<void> | void {
    if (this.#exit) return;
    let frame: FromGuest;
    try {
      const parsed: unknown = JSON.parse(text);
      if (!isObject(parsed)) return this.#violation("a frame that is no object");
      frame = parsed as FromGuest; // each field is checked where it is used
    } catch {
      return this.#violation("bytes that are no frame");
    }
    switch (frame.t) {
      case "log":
        return this.#takeLog(frame);
      case "ready":
      case "failed":
        return this.#takeStartResult(frame);
      case "result":
      case "ask":
      case "abandon":
      case "note":
        return this.#takeCallFrame(frame, text.length);
      default:
        return this.#violation("a frame of no kind");
    }
  }

  #takeLog({ level, text }: Extract<FromGuest, { t: "log" }>): void {
    const line = typeof text === "string" ? text : JSON.stringify(text) ?? "";
    this.#log_bytes += line.length + 32;
    if (this.#log_bytes > MAX_LOG_BYTES) {
      const detail = `it wrote more than ${MAX_LOG_BYTES} bytes to its console`;
      return this.#kill({ cause: "output", detail });
    }
    this.#options.onLog(level === "error" || level === "warning" ? level : "info", line);
    this.#countNote();
  }

  #takeStartResult(frame: Extract<FromGuest, { t: "ready" | "failed" }>): void {
    const linking = this.#starting;
    if (!linking) return this.#violation("a second start");
    const shape = frame.t === "ready" ? readShape(frame.exports) : undefined;
    if (frame.t === "ready" && !shape) return this.#violation("exports that are none");
    this.#starting = null;
    this.#channel.watch(0);
    if (shape) linking.resolve(shape);
    else linking.reject(this.#decoded("error" in frame ? frame.error : undefined, () => undefined));
  }

  #takeCallFrame(frame: Extract<FromGuest, { call: string }>, bytes: number): Promise<void> | void {
    const open = this.#open.get(frame.call);
    if (!open) return this.#violation("a frame for a call that is not open");
    const { options } = open;
    if (frame.t === "note" || frame.t === "result") {
      open.bytes += bytes;
      if (open.bytes > options.max_bytes) {
        const detail = `its answer has more than ${options.max_bytes} bytes`;
        return this.#kill({ cause: "output", detail });
      }
    }
    switch (frame.t) {
      case "note":
        options.onNote?.(frame.value);
        return this.#countNote();
      case "abandon":
        return this.#abandon(open, frame);
      case "ask":
        return this.#applyNotifications(open, frame.effects) ? this.#answer(open, frame) : undefined;
      case "result":
        if (this.#applyNotifications(open, frame.effects)) this.#settle(frame.call, open, frame);
        return;
    }
  }

  #decoded(error: unknown, errorOf: (number: number) => unknown): unknown {
    return decodeGuestError(error, errorOf, `module "${this.#options.name}"`);
  }

  /** Once for each question; the answer may be on its way already. */
  #abandon(open: OpenCall, { id, reason }: Extract<FromGuest, { t: "abandon" }>): void {
    if (!(id <= this.#last_request) || --this.#abandonable < 0) {
      return this.#violation("that it does not want what it did not ask for");
    }
    open.requests.get(id)?.abort(this.#decoded(reason, () => undefined));
  }

  #countNote(): void {
    if (++this.#notes < CREDIT_STEP) return;
    this.#send({ t: "credit", n: this.#notes });
    this.#notes = 0;
  }

  #applyNotifications({ options }: OpenCall, effects: readonly Notification[] | undefined): boolean {
    if (effects === undefined) return true;
    try {
      if (!Array.isArray(effects) || effects.length > MAX_NOTIFICATIONS) {
        throw new TypeError("too many effects");
      }
      options.host.apply(effects);
      return true;
    } catch (error) {
      if (error instanceof PreampError) this.#kill({ cause: "violation", detail: error.message });
      else this.#violation(`effects that are none: ${errorMessage(error)}`);
      return false;
    }
  }

  #settle(id: string, open: OpenCall, { value, error }: Extract<FromGuest, { t: "result" }>): void {
    this.#open.delete(id);
    for (const controller of open.requests.values()) controller.abort(new Error("the call is over"));
    if (error === undefined) open.resolve(value);
    else open.reject(this.#decoded(error, (number) => this.#errors.get(number)));
  }

  async #answer(open: OpenCall, frame: Extract<FromGuest, { t: "ask" }>): Promise<void> {
    const { id, target, method, args } = frame;
    if (
      !Number.isSafeInteger(id) || typeof target !== "string" || typeof method !== "string" ||
      !Array.isArray(args) || open.requests.has(id)
    ) return this.#violation("a question that is none");
    this.#last_request = Math.max(this.#last_request, id);
    this.#abandonable++;
    if (++this.#pending_requests > MAX_REQUESTS) {
      return this.#violation(`more than ${MAX_REQUESTS} questions at once`);
    }
    const controller = new AbortController();
    open.requests.set(id, controller);
    const { host } = open.options;
    let answer: { value?: unknown; error?: SerializedError; view?: SessionDelta };
    try {
      const onPiece = (value: unknown) => this.#send({ t: "piece", id, value });
      const value = await host.request(target, method, args, { signal: controller.signal, onPiece });
      const view = this.#exit ? undefined : host.view();
      answer = { ...(value === undefined ? {} : { value }), ...(view ? { view } : {}) };
    } catch (error) {
      answer = { error: this.#encode(error) };
    }
    this.#pending_requests--;
    this.#next_answer.resolve();
    this.#next_answer = Promise.withResolvers();
    open.requests.delete(id);
    this.#send({ t: "reply", id, ...answer });
  }

  /** Stacks and causes of the host are nobody's business; the error itself is kept, for when it comes back. */
  #encode(error: unknown): SerializedError {
    const { stack: _, cause: __, ...thrown } = encodeError(error);
    const host = this.#next_error++;
    this.#errors.set(host, error);
    if (this.#errors.size > MAX_ERRORS) this.#errors.delete(this.#errors.keys().next().value!);
    return { ...thrown, host };
  }

  #violation(what: string): void {
    this.#options.onViolation(`Module "${this.#options.name}" sent ${what}: it was ended`);
    this.#kill({ cause: "violation", detail: `it broke the protocol: ${what}` });
  }

  #handleExit(death: GuestExit): void {
    this.#exit = death;
    const error = exitError(death, `module "${this.#options.name}"`);
    this.#starting?.reject(error);
    this.#starting = null;
    for (const open of this.#open.values()) {
      for (const controller of open.requests.values()) controller.abort(error);
      open.reject(error);
    }
    this.#open.clear();
  }
}

/** What modules of ours answer is nearly always JSON already, and is made it where it is not. */
function textOf(frame: ToGuest): string {
  try {
    return JSON.stringify(frame);
  } catch {
    return JSON.stringify(toPlain(frame)); // a cycle, a BigInt, a getter that throws
  }
}

/** Timers of one call. */
class CallTimers {
  readonly #expired: (detail: string) => void;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];

  constructor(expired: (detail: string) => void) {
    this.#expired = expired;
  }

  after(ms: number, detail: string): void {
    this.#timers.push(setTimeout(() => this.#expired(detail), ms));
  }

  clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/** Reads a guest's word for a shape; undefined when it is none. */
export function readShape(value: unknown): Shape | undefined {
  if (!isObject(value) || !isObject(value.data) || !Array.isArray(value.methods)) return undefined;
  return { data: value.data, methods: value.methods.filter((name) => typeof name === "string") };
}
