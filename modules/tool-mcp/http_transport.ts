/**
 * Streamable HTTP as a transport of the MCP client (MCP 2025-11-25, Transports): each message is a POST; its
 * answer is JSON or a stream. Sending a request ends when its answer has come, or when none can come.
 */
import {
  type JSONRPCMessage,
  PROTOCOL_VERSION_META_KEY,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import { errorMessage, isObject, type JsonObject } from "preamp/base";
import { bodyOf, ConnectionCut, type HttpAccess, request, textOf } from "./http_access.ts";
import { Inbox, type SentMessage } from "./inbox.ts";
import { eventsOf } from "./lines.ts";
import type { RequestId } from "./messages.ts";

/** Time before a stream is taken up again: by default, and the least and most that a server can name. */
const RETRY_MS = 1_000;
const MIN_RETRY_MS = 50;
const MAX_RETRY_MS = 60_000;
/** Most attempts to take up a stream that fail one after the other. */
const MAX_ATTEMPTS = 3;

/** Where a stream can be taken up. */
interface Position {
  /** Id of the last event; absent: it cannot be taken up. */
  id?: string;
  retry_ms: number;
}

/** A server behind one URL. */
export class HttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** The client ends a request of the new protocol by its signal. */
  readonly hasPerRequestStream = true;
  sessionId?: string;
  /** What the server said when it last refused a request: the client replaces it while it connects. */
  refusal: string | null = null;
  #version: string | undefined;
  readonly #url: URL;
  readonly #access: HttpAccess;
  readonly #inbox = new Inbox();
  readonly #closing = new AbortController();
  /** Requests that wait → what ends the wait. */
  readonly #waits = new Map<RequestId, AbortController>();

  constructor(url: URL, access: HttpAccess) {
    this.#url = url;
    this.#access = access;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  setProtocolVersion(version: string): void {
    this.#version = version;
  }

  close(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    this.#closing.abort(new Error("The connection was closed"));
    this.onclose?.();
    return Promise.resolve();
  }

  /** @throws {Error} for a request whose answer did not come. */
  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    const sent = message as SentMessage;
    const id = this.#inbox.sends(sent);
    if (id === undefined) {
      const { requestId } = isObject(sent.params) ? sent.params : {};
      if (sent.method === "notifications/cancelled") this.#waits.get(requestId as RequestId)?.abort();
      const response = await this.#post(message, options.headers, this.#closing.signal);
      return await response.body?.cancel();
    }
    const wait = new AbortController();
    this.#waits.set(id, wait);
    const ends = [
      this.#closing.signal,
      wait.signal,
      ...(options.requestSignal ? [options.requestSignal] : []),
    ];
    try {
      await this.#exchange(message, id, AbortSignal.any(ends), options.headers);
    } finally {
      this.#inbox.forget(id);
      this.#waits.delete(id);
    }
  }

  async #exchange(
    message: JSONRPCMessage,
    id: RequestId,
    signal: AbortSignal,
    headers: TransportSendOptions["headers"],
  ): Promise<void> {
    let response: Response;
    try {
      response = await this.#post(message, headers, signal);
    } catch (error) {
      if (error instanceof SdkHttpError) this.refusal = error.message;
      if (!isModern(message) || !(error instanceof SdkHttpError) || error.status !== 400) throw error;
      await this.#receive(String(error.data.text), id, signal); // the new protocol answers errors with 400
      if (this.#inbox.waitsFor(id)) throw error;
      return;
    }
    if ("method" in message && message.method === "initialize") {
      const session = response.headers.get("mcp-session-id");
      if (session !== null) this.sessionId = session;
    }
    const type = (response.headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
    if (type === "text/event-stream") return await this.#follow(response, id, signal);
    await this.#receive(await textOf(response, this.#access.max_bytes), id, signal);
    if (!this.#inbox.waitsFor(id)) return;
    const fact = type.endsWith("json")
      ? "without the answer to this request"
      : `with ${type || "nothing"}, not MCP`;
    throw new SdkError(SdkErrorCode.ClientHttpUnexpectedContent, `it answered ${response.status} ${fact}`);
  }

  /** Reads a stream until the answer is there; takes it up again where the server lets it end before. */
  async #follow(first: Response, id: RequestId, signal: AbortSignal): Promise<void> {
    const position: Position = { retry_ms: RETRY_MS };
    for (let response = first;; response = await this.#takeUp(position, signal)) {
      let failure = new Error("the stream ended before the answer");
      try {
        await this.#readStream(response, id, position, signal);
      } catch (error) {
        if (!(error instanceof ConnectionCut)) throw error; // the message cannot be read, or the call has ended
        failure = error;
      }
      if (!this.#inbox.waitsFor(id)) return;
      if (position.id === undefined) throw failure;
    }
  }

  async #readStream(
    response: Response,
    id: RequestId,
    position: Position,
    signal: AbortSignal,
  ): Promise<void> {
    const { max_bytes } = this.#access;
    for await (const event of eventsOf(bodyOf(response, max_bytes), max_bytes)) {
      if (event.id !== undefined) position.id = event.id;
      if (event.retry_ms !== undefined) {
        position.retry_ms = Math.min(Math.max(event.retry_ms, MIN_RETRY_MS), MAX_RETRY_MS);
      }
      if (event.data !== "") await this.#receive(event.data, id, signal);
      if (!this.#inbox.waitsFor(id)) return; // what follows the answer is not for this request
    }
  }

  async #receive(text: string, alone: RequestId, signal: AbortSignal): Promise<void> {
    const messages = await this.#inbox.read(text, { alone, signal });
    for (const message of messages) this.onmessage?.(message as unknown as JSONRPCMessage);
  }

  #post(
    message: JSONRPCMessage,
    more: TransportSendOptions["headers"],
    signal: AbortSignal,
  ): Promise<Response> {
    const headers = new Headers({ ...more, ...this.#access.headers });
    headers.set("content-type", "application/json");
    headers.set("accept", "application/json, text/event-stream");
    this.#identify(headers);
    for (const [name, value] of Object.entries(headersOf(message))) headers.set(name, value);
    if ("method" in message && message.method === "initialize") headers.delete("mcp-session-id");
    const init = { method: "POST", headers, body: JSON.stringify(message), signal };
    return request(this.#url, init, this.#access);
  }

  /** Asks for the rest of a stream, after the time that the server named. */
  async #takeUp({ id, retry_ms }: Position, signal: AbortSignal): Promise<Response> {
    const headers = new Headers(this.#access.headers);
    headers.set("accept", "text/event-stream");
    headers.set("last-event-id", id!); // the caller checked it
    this.#identify(headers);
    for (let attempt = 1;; attempt++) {
      await waitFor(retry_ms, signal);
      try {
        return await request(this.#url, { headers, signal }, this.#access);
      } catch (error) {
        signal.throwIfAborted();
        const is_final = error instanceof SdkHttpError && error.status < 500; // it has no such stream any more
        if (is_final || attempt === MAX_ATTEMPTS) {
          throw new Error(`the answer's stream cannot be taken up again: ${errorMessage(error)}`, {
            cause: error,
          });
        }
      }
    }
  }

  #identify(headers: Headers): void {
    if (this.sessionId !== undefined) headers.set("mcp-session-id", this.sessionId);
    if (this.#version !== undefined) headers.set("mcp-protocol-version", this.#version);
  }
}

/** Methods whose requests name what they are about in a header → its field (SEP-2243). */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** Returns the protocol version that a request of the new protocol states in its `_meta`. */
function versionOf(message: JSONRPCMessage): string | undefined {
  const meta = "method" in message && "id" in message ? message.params?._meta : undefined;
  const version = isObject(meta) ? (meta as JsonObject)[PROTOCOL_VERSION_META_KEY] : undefined;
  return typeof version === "string" ? version : undefined;
}

function isModern(message: JSONRPCMessage): boolean {
  return versionOf(message) !== undefined;
}

/** Returns the headers that repeat what a request of the new protocol says. */
function headersOf(message: JSONRPCMessage): Record<string, string> {
  const version = versionOf(message);
  if (version === undefined || !("method" in message)) return {};
  const field = Object.hasOwn(NAMED, message.method) ? NAMED[message.method] : undefined;
  const name = field === undefined ? undefined : message.params?.[field];
  return {
    "mcp-protocol-version": version,
    "mcp-method": message.method,
    ...(typeof name === "string" ? { "mcp-name": headerText(name) } : {}),
  };
}

/** Returns a text as a header's value: as it is, or in Base64 where that would not be safe (SEP-2243). */
function headerText(text: string): string {
  const is_plain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/.test(text) &&
    !/^=\?base64\?.*\?=$/.test(text);
  return is_plain ? text : `=?base64?${new TextEncoder().encode(text).toBase64()}?=`;
}

function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abort = () => reject(signal.reason);
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", abort, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
  });
}
