/**
 * Guest's end of the channel: sends requests and notifications of the module, and dispatches calls and
 * replies of the host. The only holder of the port. Does not know what requests mean.
 */
import type { FromGuest, Notification, SerializedError, SessionDelta, ToGuest } from "../protocol.ts";
import { AbortController, Map, push, toText, WeakMap, withResolvers } from "../../sdk/primordials.ts";
import { decodeHostError, encodeError } from "../error_codec.ts";

const setTimer = setTimeout; // a module may replace it

/** A call of the host. */
export interface OpenCall {
  readonly id: string;
  readonly ref: number;
  readonly method: string;
  readonly args: readonly unknown[];
  /** Aborts when the host aborts the call. */
  readonly signal: AbortSignal;
  /** Sends a part of the result ahead. */
  note(value: unknown): void;
}

/** Handlers of the host's messages. */
export interface RpcEvents {
  /** Serves a call; resolves to its plain result. */
  serve(call: OpenCall): Promise<unknown>;
  /** Applies changed session data. */
  view(view: SessionDelta): void;
  cancellation(state: SessionDelta["cancellation"]): void;
}

/** Options of {@link GuestRpc.request}. */
export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Receives parts of the answer as they arrive. */
  onPiece?: ((value: unknown) => void) | undefined;
}

interface PendingRequest extends RequestOptions {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Connection of a guest to its host. */
export class GuestRpc {
  readonly #post: (text: string) => void;
  readonly #events: RpcEvents;
  /** Functions that abort the open calls. */
  readonly #calls = new Map<string, (reason: Error, grace_ms: number) => void>();
  readonly #pending = new Map<number, PendingRequest>();
  /** Numbers of the host's errors, so that the host recognises one that the module rethrows. */
  readonly #hostErrors = new WeakMap<object, number>();
  #notifications: Notification[] = [];
  #next_request = 1;

  constructor(post: (text: string) => void, events: RpcEvents) {
    this.#post = post;
    this.#events = events;
  }

  /** Handles one message of the host. */
  take(message: Exclude<ToGuest, { t: "start" }>): void {
    switch (message.t) {
      case "call":
        if (message.view) this.#events.view(message.view);
        void this.#serve(message);
        return;
      case "abort":
        return this.#calls.get(message.call)?.(this.#decoded(message.reason), message.grace_ms);
      case "reply":
        return this.#settle(message);
      case "piece":
        return this.#pending.get(message.id)?.onPiece?.(message.value);
      case "cancellation":
        return this.#events.cancellation(message.state);
    }
  }

  async #serve({ call, ref, method, args, max_bytes }: Extract<ToGuest, { t: "call" }>): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    const settled = withResolvers<unknown>();
    this.#calls.set(call, (reason, grace_ms) => {
      setTimer(() => settled.reject(reason), grace_ms / 2); // when the module ignores the signal
      controller.abort(reason);
    });
    let left = max_bytes;
    const note = (value: unknown) => {
      if (!this.#calls.has(call)) return;
      const text = toText({ t: "note", call, value } satisfies FromGuest);
      left -= text.length;
      this.#post(text);
    };
    let outcome: { value?: unknown; error?: SerializedError };
    try {
      const work = this.#events.serve({ id: call, ref, method, args, signal, note });
      void settleWith(settled, work);
      const value = await settled.promise;
      outcome = value === undefined ? {} : { value };
    } catch (error) {
      outcome = { error: encodeError(error, (known) => this.#hostErrors.get(known)) };
    }
    this.#calls.delete(call);
    const result = { t: "result", call, ...this.#takeNotifications() };
    const text = toText({ ...result, ...outcome });
    this.#post(
      text.length <= left
        ? text
        : toText({ ...result, error: encodeError(tooLarge(text.length, max_bytes)) }),
    );
  }

  /**
   * Sends a request in the latest open call; resolves to the answer.
   * @throws {Error} if no call is open: a module acts only while it is called.
   */
  async request(
    target: string,
    method: string,
    args: readonly unknown[],
    options: RequestOptions = {},
  ): Promise<unknown> {
    const call = this.#latestCall();
    if (call === undefined) throw outsideCall(`${target}.${method}`);
    const { signal } = options;
    if (signal?.aborted) throw signal.reason;
    const id = this.#next_request++;
    const { promise, resolve, reject } = withResolvers<unknown>();
    this.#pending.set(id, { ...options, resolve, reject });
    this.#send({ t: "ask", call, id, target, method, args, ...this.#takeNotifications() });
    if (!signal) return await promise;
    const abandon = () => {
      if (this.#calls.has(call)) this.#send({ t: "abandon", call, id, reason: encodeError(signal.reason) });
    };
    signal.addEventListener("abort", abandon, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", abandon);
    }
  }

  /**
   * Queues a notification, sent with the next frame. `name` names the action in the error. @throws {Error} if
   * no call is open.
   */
  notify(notification: Notification, name: string): void {
    if (this.#latestCall() === undefined) throw outsideCall(name);
    push(this.#notifications, notification);
  }

  /** Sends a console line. */
  log(level: "info" | "warning" | "error", text: string): void {
    this.#post(toText({ t: "log", level, text } satisfies FromGuest));
  }

  /** Sends the result of linking the module. */
  sendStartResult(frame: Extract<FromGuest, { t: "ready" | "failed" }>): void {
    this.#send(frame);
  }

  #settle({ id, value, error, view }: Extract<ToGuest, { t: "reply" }>): void {
    if (view) this.#events.view(view);
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    if (error === undefined) return pending.resolve(value);
    pending.reject(this.#decoded(error));
  }

  #decoded(error: SerializedError): Error {
    const thrown = decodeHostError(error);
    if (error.host !== undefined) this.#hostErrors.set(thrown, error.host);
    return thrown;
  }

  #latestCall(): string | undefined {
    let latest: string | undefined;
    this.#calls.forEach((_, id) => latest = id);
    return latest;
  }

  #takeNotifications(): { effects?: readonly Notification[] } {
    if (this.#notifications.length === 0) return {};
    const effects = this.#notifications;
    this.#notifications = [];
    return { effects };
  }

  #send(frame: FromGuest): void {
    this.#post(toText(frame));
  }
}

/** Settles `first` like `work`, unless it has settled. Without `Promise.race`, which a module may replace. */
async function settleWith(first: PromiseWithResolvers<unknown>, work: Promise<unknown>): Promise<void> {
  try {
    first.resolve(await work);
  } catch (error) {
    first.reject(error);
  }
}

/** Returns the error of an answer that the host would not take. */
export function tooLarge(bytes: number, max_bytes: number): Error {
  const message = `The answer has ${bytes} bytes: a module may send at most ${max_bytes}`;
  return Object.assign(new RangeError(message), { code: "tool_output_exceeded" });
}

function outsideCall(name: string): Error {
  return new Error(`Cannot use ${name} now: a module acts only while it is called`);
}
