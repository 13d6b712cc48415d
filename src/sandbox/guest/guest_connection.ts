/**
 * Host's end of the channel to a guest: opens calls, answers requests inside them, and ends a guest that
 * breaks a rule. Knows frames and limits; the {@link CallHost} of each call knows what the guest's requests
 * mean.
 */
import { LateError, later } from "../../process/system_clock.ts";
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { isObject, toPlain } from "../../sdk/json.ts";
import {
  type Channel,
  endedError,
  exitError,
  type FromGuest,
  type GuestExit,
  type IsAsked,
  MEMORY,
  type SessionDelta,
  type Shape,
  type ToGuest,
} from "../protocol.ts";
import { decodeGuestError } from "../error_codec.ts";
import { type CallHost, OpenRequests, type RequestingCall } from "./open_requests.ts";

/** Options of {@link GuestConnection.call}. */
export interface CallOptions {
  readonly host: CallHost;
  /** Aborts the call in the guest; a guest that does not end the call within `grace_ms` is ended. */
  readonly signal?: AbortSignal | undefined;
  readonly grace_ms?: number;
  /**
   * Milliseconds after which the guest is ended; for a call of the module itself, of its own time. Default:
   * no limit.
   */
  readonly deadline_ms?: number | undefined;
  /** Most bytes of the answer including its parts. */
  readonly max_bytes: number;
  /** Receives parts of the result. */
  readonly onNote?: ((value: unknown) => void) | undefined;
}

/** Options of {@link GuestConnection}. */
export interface GuestOptions {
  /** Name of the module in messages. */
  readonly name: string;
  /** Receives lines of the module's console. */
  onLog(level: "info" | "warning" | "error", text: string): void;
  /** Called with the reason when a guest was ended because it broke the protocol. */
  onViolation(message: string): void;
  /** Default: the plan names nothing. */
  readonly isAsked?: IsAsked | undefined;
}

interface OpenCall extends RequestingCall {
  readonly options: CallOptions;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  bytes: number;
}

/** Most bytes of a frame while a bundle is linked. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024;
/** Most bytes of a frame while no call is open: a console line. */
const MAX_IDLE_BYTES = 64 * 1024;
const MAX_NOTIFICATIONS = 512;
/** Most bytes of console output in the life of a guest. */
const MAX_LOG_BYTES = 4 * 1024 * 1024;

/** Connection to one running guest. */
export class GuestConnection {
  readonly #channel: Channel;
  readonly #options: GuestOptions;
  readonly #open = new Map<string, OpenCall>();
  readonly #requests = new OpenRequests({
    send: (frame) => this.#send(frame),
    violation: (reason) => this.#violation(reason),
  });
  #starting: { resolve(shape: Shape): void; reject(error: unknown): void } | null = null;
  #exit: GuestExit | null = null;
  #next_call = 1;
  #log_bytes = 0;

  constructor(channel: Channel, options: GuestOptions) {
    this.#channel = channel;
    this.#options = options;
    channel.listen({
      take: (text) => this.#enter(text),
      limit: () => this.#limit(),
    });
    void channel.exited.then((exit) => this.#handleExit(exit));
  }

  /** Resolves when the guest has exited. */
  get exited(): Promise<GuestExit> {
    return this.#channel.exited;
  }

  /**
   * Links a bundle within `deadline_ms` of the guest's own time; resolves to the shape of its exports.
   * @throws The error of the module's top level; {@link exitError}.
   */
  async start(code: string, uses: readonly string[], deadline_ms: number): Promise<Shape> {
    if (this.#exit) throw exitError(this.#exit, this.#options.name);
    const { promise, resolve, reject } = Promise.withResolvers<Shape>();
    this.#starting = { resolve, reject };
    this.#channel.watch(0);
    this.#send({ t: "start", code, uses });
    return await this.#loaded(deadline_ms, promise, "its top level was not done");
  }

  /** Waits for a step of loading; ends a guest that takes too long. A busy machine is not its fault. */
  async #loaded<T>(deadline_ms: number, step: Promise<T>, late: string): Promise<T> {
    try {
      return await this.#channel.within(deadline_ms, step);
    } catch (error) {
      if (!(error instanceof LateError)) throw error;
      this.#kill({ cause: "timeout", detail: `${late} within ${deadline_ms / 1000} s` });
      return await step; // rejects when the guest has exited
    }
  }

  /**
   * Calls a method of the module (`ref` 0) or of one of its objects.
   * @throws The error of the guest; {@link exitError} if the guest exits; {@link endedError} if it has.
   */
  async call(ref: number, method: string, args: readonly unknown[], options: CallOptions): Promise<unknown> {
    if (this.#exit) throw endedError(this.#exit, this.#options.name);
    const { signal, deadline_ms, grace_ms = 1_000, host, max_bytes } = options;
    signal?.throwIfAborted();
    const view = host.view();
    const id = `${this.#next_call++}.${Math.random().toString(36).slice(2, 12)}`;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const open: OpenCall = { host, options, resolve, reject, bytes: 0, requests: new Map() };
    this.#open.set(id, open);
    const loads = ref === 0 && deadline_ms !== undefined;
    this.#channel.watch(loads || deadline_ms === undefined ? 0 : deadline_ms + 2 * grace_ms);
    this.#send({ t: "call", call: id, ref, method, args, max_bytes, ...(view ? { view } : {}) });
    const timers: (() => void)[] = [];
    const killAfter = (ms: number, detail: string) =>
      timers.push(later(ms, () => this.#kill({ cause: "timeout", detail })));
    if (deadline_ms !== undefined && !loads) {
      killAfter(deadline_ms, `no answer within ${deadline_ms / 1000} s`);
    }
    const abort = () => {
      this.#send({ t: "abort", call: id, reason: this.#requests.encodeError(signal!.reason), grace_ms });
      killAfter(grace_ms, "it did not end a call that was aborted");
    };
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await (loads ? this.#loaded(deadline_ms, promise, `${method}() did not finish`) : promise);
    } finally {
      for (const cancel of timers) cancel();
      signal?.removeEventListener("abort", abort);
      if (deadline_ms !== undefined && this.#open.size === 0 && !this.#exit) this.#channel.watch(0); // no limit while idle
    }
  }

  /** Sends the session's cancellation state. */
  sendCancellation(state: SessionDelta["cancellation"]): void {
    this.#send({ t: "cancellation", state });
  }

  /** Ends the guest. */
  async kill(exit: GuestExit): Promise<void> {
    await this.#channel.kill(exit);
  }

  /** Ends the guest without waiting; a failure is reported to `onViolation`. */
  #kill(exit: GuestExit): void {
    this.kill(exit).catch((error) => {
      const { name, onViolation } = this.#options;
      onViolation(`Module "${name}" could not be ended: ${errorMessage(error)}`);
    });
  }

  #send(frame: ToGuest): void {
    if (this.#exit === null) this.#channel.send(textOf(frame));
  }

  /** Returns the most bytes of the next frame: what the open calls allow. */
  #limit(): number {
    if (this.#starting) return MAX_REQUEST_BYTES;
    if (this.#open.size === 0) return MAX_IDLE_BYTES;
    let most = 0;
    for (const { options } of this.#open.values()) most = Math.max(most, options.max_bytes);
    return most + MAX_IDLE_BYTES; // the frame around the answer
  }

  /**
   * Security boundary: the only place where texts of a guest enter the host. A text can at most end its
   * guest: nothing is thrown here, and every rejection is handled.
   */
  #enter(text: string): void {
    const refuse = (error: unknown) => this.#violation(`invalid frame: ${errorMessage(error)}`);
    try {
      this.#take(text)?.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  /**
   * Handles a frame. Returns a promise only if there is something to await; {@link #enter} handles its
   * rejection.
   */
  #take(text: string): Promise<void> | void {
    if (this.#exit) return;
    let frame: FromGuest;
    try {
      const parsed: unknown = JSON.parse(text);
      if (!isObject(parsed)) return this.#violation("a frame must be an object");
      frame = parsed as FromGuest; // each field is checked where it is used
    } catch {
      return this.#violation("a frame must be JSON");
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
        return this.#violation("unknown kind of frame");
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
  }

  #takeStartResult(frame: Extract<FromGuest, { t: "ready" | "failed" }>): void {
    const starting = this.#starting;
    if (!starting) return this.#violation("unexpected result of the start");
    const shape = frame.t === "ready" ? readShape(frame.exports) : undefined;
    if (frame.t === "ready" && !shape) return this.#violation("invalid exports");
    this.#starting = null;
    this.#channel.watch(0);
    if (shape) starting.resolve(shape);
    else starting.reject(this.#decoded("error" in frame ? frame.error : undefined));
  }

  #takeCallFrame(frame: Extract<FromGuest, { call: string }>, bytes: number): Promise<void> | void {
    const open = this.#open.get(frame.call);
    if (!open) return this.#violation("the call of a frame is not open");
    const { options } = open;
    if (frame.t === "note" || frame.t === "result") {
      open.bytes += bytes;
      if (open.bytes > options.max_bytes) {
        const detail = `its answer has more than ${options.max_bytes} bytes`;
        return this.#kill({ cause: "output", detail });
      }
    }
    if (frame.t === "note") {
      options.onNote?.(frame.value);
      return;
    }
    if (frame.t === "abandon") {
      return this.#requests.abandon(open, frame.id, () => this.#decoded(frame.reason));
    }
    if (!this.#applyNotifications(open, frame.effects)) return;
    if (frame.t === "ask") return this.#requests.serve(open, frame);
    this.#settle(frame.call, open, frame);
  }

  #decoded(error: unknown, errorOf?: (number: number) => unknown): unknown {
    const { name, isAsked } = this.#options;
    return decodeGuestError(error, errorOf, `module "${name}"`, isAsked);
  }

  /** Applies the notifications of a frame; returns false if that ended the guest. */
  #applyNotifications({ host }: OpenCall, notifications: unknown): boolean {
    if (notifications === undefined) return true;
    try {
      if (!Array.isArray(notifications) || notifications.length > MAX_NOTIFICATIONS) {
        throw new TypeError(`must be a list of at most ${MAX_NOTIFICATIONS}`);
      }
      host.apply(notifications);
      return true;
    } catch (error) {
      if (error instanceof PreampError) this.#kill({ cause: "violation", detail: error.message });
      else this.#violation(`invalid notifications: ${errorMessage(error)}`);
      return false;
    }
  }

  #settle(id: string, open: OpenCall, { value, error }: Extract<FromGuest, { t: "result" }>): void {
    if (isOutOfMemory(error)) return this.#kill(MEMORY);
    this.#open.delete(id);
    for (const controller of open.requests.values()) controller.abort(new Error("the call is over"));
    if (error === undefined) open.resolve(value);
    else open.reject(this.#decoded(error, (number) => this.#requests.error(number)));
  }

  #violation(reason: string): void {
    this.#options.onViolation(
      `Module "${this.#options.name}" broke the sandbox protocol (${reason}); it was stopped`,
    );
    this.#kill({ cause: "violation", detail: `it broke the sandbox protocol: ${reason}` });
  }

  #handleExit(exit: GuestExit): void {
    this.#exit = exit;
    const error = exitError(exit, this.#options.name);
    this.#starting?.reject(error);
    this.#starting = null;
    for (const open of this.#open.values()) {
      for (const controller of open.requests.values()) controller.abort(error);
      open.reject(error);
    }
    this.#open.clear();
  }
}

/**
 * Returns whether the engine refused memory to the guest: the system's limit was reached before the watchdog
 * of the child looked.
 */
function isOutOfMemory(error: unknown): boolean {
  return isObject(error) && error.name === "RangeError" && error.message === "Array buffer allocation failed";
}

/** Returns the text of a frame. Values that are not JSON, such as cycles, are converted first. */
function textOf(frame: ToGuest): string {
  try {
    return JSON.stringify(frame);
  } catch {
    return JSON.stringify(toPlain(frame)); // such as a BigInt or a getter that throws
  }
}

/** Reads a shape that a guest sent; returns undefined if it is malformed. */
export function readShape(value: unknown): Shape | undefined {
  if (!isObject(value) || !isObject(value.data) || !Array.isArray(value.methods)) return undefined;
  return { data: value.data, methods: value.methods.filter((name) => typeof name === "string") };
}
