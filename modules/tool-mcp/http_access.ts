/** Requests to a server on the web: only to the hosts of its grant, without redirects, with a maximum. */
import { SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { errorMessage, type GrantedPermissions, isHostGranted } from "preamp/base";

/** What a server on the web may be sent, and may send. */
export interface HttpAccess {
  readonly net: GrantedPermissions["net"];
  /** Headers of each request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Most bytes of one answer. */
  readonly max_bytes: number;
}

/** Most bytes of the body of a refusal that are read. */
const MAX_REFUSAL_BYTES = 65_536;

/**
 * Resolves to the response of a server.
 *
 * @throws {SdkHttpError} for a status other than 2xx, with the start of the body as `data.text`.
 * @throws {Error} for a host that is not granted, a redirect, a connection that fails: in words without the
 * address, whose query may be a secret.
 */
export async function request(url: URL, init: RequestInit, { net }: HttpAccess): Promise<Response> {
  if (!isHostGranted(net, url)) throw new Error(`The plan does not grant net to ${url.host}`);
  let response: Response;
  try {
    response = await fetch(url, { ...init, redirect: "manual" });
  } catch (error) {
    init.signal?.throwIfAborted();
    throw new Error(`No connection to ${url.host}: ${causeOf(error)}`, { cause: error });
  }
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    throw new Error(`${url.host} redirects to ${targetOf(response, url)}: write that address into the plan`);
  }
  if (response.ok) return response;
  const text = await startOf(response);
  throw new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, refusalOf(response, text, init), {
    status: response.status,
    statusText: response.statusText,
    text,
  });
}

/** Thrown when the connection ends before all of a response has come. */
export class ConnectionCut extends Error {
  constructor(cause: unknown) {
    super("the connection was cut before the answer", { cause });
  }
}

/** Yields the body of a response. @throws {ConnectionCut} @throws {Error} for more than `max_bytes`. */
export async function* bodyOf(response: Response, max_bytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > max_bytes) throw new Error(`The answer has more than ${max_bytes} bytes`);
      yield chunk;
    }
  } catch (error) {
    throw error instanceof TypeError ? new ConnectionCut(error) : error; // the other errors are of a signal
  }
}

/** Resolves to the text of a response. @throws {ConnectionCut} @throws {Error} for more than `max_bytes`. */
export async function textOf(response: Response, max_bytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of bodyOf(response, max_bytes)) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}

/** Returns why a connection failed, without the whole address with which the message of `fetch` begins. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return errorMessage(cause).replace(/^error sending request .*?\): (client error \(Connect\): )?/s, "")
    .slice(0, 300);
}

/** Returns where a redirect leads, without its query. */
function targetOf(response: Response, url: URL): string {
  const target = URL.parse(response.headers.get("location") ?? "", url);
  return target === null ? "elsewhere" : `${target.origin}${target.pathname}`.slice(0, 200);
}

async function startOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const part of bodyOf(response, MAX_REFUSAL_BYTES)) {
      text += decoder.decode(part, { stream: true });
    }
  } catch {
    // the status is what counts
  }
  return text;
}

/** Returns the words of a refusal: what the status means here, and what the server says. */
function refusalOf({ status, headers }: Response, text: string, init: RequestInit): string {
  const said = reasonIn(text, headers.get("content-type"));
  const tail = said === "" ? "" : `: ${said}`;
  if (status === 401) {
    const sent = new Headers(init.headers).has("authorization");
    const fact = sent
      ? "it wants authorization and does not accept the token it was sent, which may be expired"
      : "it wants authorization";
    return `${fact} (401)${tail}; give it a valid token in the plan, such as headers: ` +
      '{ authorization: "Bearer ${SERVER_TOKEN}" }';
  }
  if (status === 403) return `it does not permit this (403)${tail}`;
  const wait = /^\d{1,6}$/.exec(headers.get("retry-after") ?? "")?.[0];
  return `it answered ${status}${tail}${wait === undefined ? "" : `; it may be asked again in ${wait} s`}`;
}

/** Returns what the body of a refusal says: the message of an error in JSON, or a short text. */
function reasonIn(text: string, type: string | null): string {
  try {
    const { error, message, error_description } = JSON.parse(text);
    const found = [error?.message, error_description, message, error].find((one) => typeof one === "string");
    return String(found ?? "").slice(0, 300);
  } catch {
    return type?.includes("html") ? "" : text.trim().slice(0, 300);
  }
}
