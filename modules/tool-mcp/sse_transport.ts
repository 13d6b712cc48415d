/**
 * The older transport of MCP over HTTP (2024-11-05): one stream brings all messages, after an event with the
 * address to send to. The end of the stream is the end of the connection.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { errorMessage } from "preamp/base";
import { bodyOf, type HttpAccess, request } from "./http_access.ts";
import { Inbox, type SentMessage } from "./inbox.ts";
import { eventsOf } from "./lines.ts";

/** A server whose stream has one URL. */
export class SseTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  /** Why the connection ended; null: not by the server. */
  failure: string | null = null;
  readonly #url: URL;
  readonly #access: HttpAccess;
  readonly #inbox = new Inbox();
  readonly #closing = new AbortController();
  readonly #endpoint = Promise.withResolvers<URL>();

  constructor(url: URL, access: HttpAccess) {
    this.#url = url;
    this.#access = access;
    this.#endpoint.promise.catch(() => {}); // start() reports it
  }

  /** Resolves when the server has said where to send messages. */
  async start(): Promise<void> {
    const headers = new Headers(this.#access.headers);
    headers.set("accept", "text/event-stream");
    const response = await request(this.#url, { headers, signal: this.#closing.signal }, this.#access);
    void this.#read(response);
    await this.#endpoint.promise;
  }

  close(): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    this.#closing.abort(new Error("The connection was closed"));
    this.onclose?.();
    return Promise.resolve();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const headers = new Headers(this.#access.headers);
    headers.set("content-type", "application/json");
    const id = this.#inbox.sends(message as SentMessage);
    const init = { method: "POST", headers, body: JSON.stringify(message), signal: this.#closing.signal };
    try {
      const response = await request(await this.#endpoint.promise, init, this.#access);
      await response.body?.cancel();
    } catch (error) {
      if (id !== undefined) this.#inbox.forget(id);
      throw error;
    }
  }

  async #read(response: Response): Promise<void> {
    const { signal } = this.#closing;
    try {
      for await (
        const { event, data } of eventsOf(bodyOf(response, Infinity), this.#access.max_bytes)
      ) {
        if (event === "endpoint") {
          this.#endpoint.resolve(this.#endpointAt(data));
          continue;
        }
        for (const message of await this.#inbox.read(data, { signal })) {
          this.onmessage?.(message as unknown as JSONRPCMessage);
        }
      }
      this.failure = "the server ended the stream";
    } catch (error) {
      this.failure = errorMessage(error);
    }
    this.#endpoint.reject(new Error(this.failure));
    await this.close();
  }

  /** @throws {Error} for an address of another server, which could read the headers. */
  #endpointAt(text: string): URL {
    const url = URL.parse(text, this.#url);
    if (url?.origin === this.#url.origin) return url;
    throw new Error("the server names another host for its messages");
  }
}
