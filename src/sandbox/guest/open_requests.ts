/**
 * Requests of a guest to the host: how many may be open, their answers, their cancellation, and errors that
 * the guest may rethrow.
 */
import { encodeError } from "../error_codec.ts";
import type {
  FromGuest,
  Notification,
  RequestBody,
  SerializedError,
  SessionDelta,
  ToGuest,
} from "../protocol.ts";

/** Serves the requests that a guest sends while a call is open. */
export interface CallHost {
  /** Returns the session data that changed since the last message to the guest. */
  view(): SessionDelta | undefined;
  /** Applies notifications in order. @throws {TypeError} if one is malformed. */
  apply(notifications: readonly Notification[]): void;
  /** Serves a request. */
  request(request: GuestRequest): Promise<unknown>;
}

export interface GuestRequest extends RequestBody {
  /** Aborts when the guest cancels the request. */
  readonly signal: AbortSignal;
  /** Sends a part of the answer ahead. */
  onPiece(value: unknown): void;
}

/** A call of the host, inside which the guest sends requests. */
export interface RequestingCall {
  readonly host: CallHost;
  /** Requests that are not answered yet. */
  readonly requests: Map<number, AbortController>;
}

/** Collaborators of {@link OpenRequests}. */
export interface OpenRequestsDeps {
  /** Sends a message; dropped if the guest has exited. */
  send(frame: ToGuest): void;
  /** Ends the guest, because it broke the protocol. */
  violation(reason: string): void;
}

/** Most open requests in all calls of a guest. */
const MAX_REQUESTS = 256;
/** Number of the host's errors that are kept in case the guest rethrows them. */
const MAX_ERRORS = 64;

/** Requests of one guest. */
export class OpenRequests {
  readonly #deps: OpenRequestsDeps;
  readonly #errors = new Map<number, unknown>();
  #next_error = 1;
  #pending = 0;
  /** Highest number of a request. */
  #last_id = 0;
  /** Number of requests that the guest may still cancel. */
  #abandonable = 0;

  constructor(deps: OpenRequestsDeps) {
    this.#deps = deps;
  }

  /** Serves a request and sends its answer. */
  async serve(call: RequestingCall, frame: Extract<FromGuest, { t: "ask" }>): Promise<void> {
    const { id, target, method, args } = frame;
    const { send, violation } = this.#deps;
    if (
      !Number.isSafeInteger(id) || typeof target !== "string" || typeof method !== "string" ||
      !Array.isArray(args) || call.requests.has(id)
    ) return violation("invalid request");
    this.#last_id = Math.max(this.#last_id, id);
    this.#abandonable++;
    if (++this.#pending > MAX_REQUESTS) {
      return violation(
        `it had more than ${MAX_REQUESTS} open calls of the coordinator; await some before the next`,
      );
    }
    const controller = new AbortController();
    call.requests.set(id, controller);
    let answer: { value?: unknown; error?: SerializedError; view?: SessionDelta };
    try {
      const onPiece = (value: unknown) => send({ t: "piece", id, value });
      const { signal } = controller;
      const value = await call.host.request({ target, method, args, signal, onPiece });
      const view = call.host.view();
      answer = { ...(value === undefined ? {} : { value }), ...(view ? { view } : {}) };
    } catch (error) {
      answer = { error: this.encodeError(error) };
    }
    this.#pending--;
    call.requests.delete(id);
    send({ t: "reply", id, ...answer });
  }

  /** Aborts a request. Allowed once for each; the answer may have been sent already. */
  abandon({ requests }: RequestingCall, id: number, reason: () => unknown): void {
    if (!(id <= this.#last_id) || --this.#abandonable < 0) {
      return this.#deps.violation("cancelled an unknown request");
    }
    requests.get(id)?.abort(reason());
  }

  /**
   * Serializes an error of the host without its stack and cause, and keeps it in case the guest rethrows it.
   */
  encodeError(error: unknown): SerializedError {
    const { stack: _, cause: __, ...thrown } = encodeError(error);
    const host = this.#next_error++;
    this.#errors.set(host, error);
    if (this.#errors.size > MAX_ERRORS) this.#errors.delete(this.#errors.keys().next().value!);
    return { ...thrown, host };
  }

  /** Returns a kept error by its number. */
  error(number: number): unknown {
    return this.#errors.get(number);
  }
}
