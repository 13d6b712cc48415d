/** A connection to a server: starts or reaches it, and agrees on the protocol. */
import {
  Client,
  type ElicitResult,
  type jsonSchemaValidator,
  type PriorDiscovery,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Transport,
} from "@modelcontextprotocol/client";
import { errorMessage, type GrantedPermissions, type JsonObject } from "preamp/base";
import type { ServerConfig } from "./config.ts";
import { HttpTransport } from "./http_transport.ts";
import { ProcessTransport } from "./process_transport.ts";
import { programOf } from "./programs.ts";
import { acceptedContent } from "./questions.ts";
import { SseTransport } from "./sse_transport.ts";

/** What a connection may take. */
export interface ServerLimits {
  readonly timeout_s: number;
  readonly connect_timeout_s: number;
  readonly max_result_bytes: number;
}

/** A server of a plan, and what the plan grants it. */
export interface ServerTarget {
  readonly name: string;
  readonly config: ServerConfig;
  /** What the plan grants; a server of the operator has all. */
  readonly grant: Pick<GrantedPermissions, "net" | "run">;
  readonly limits: ServerLimits;
  /** Answers what the server asks a person. */
  readonly ask: (message: string, content: JsonObject) => Promise<boolean>;
}

/** Time after which a process that does not answer the first question of the new protocol has the old one. */
const PROBE_MS = 10_000;

/** The client is given no schema of a server's results: a server could choose a pattern that takes hours. */
const NO_VALIDATION: jsonSchemaValidator = {
  getValidator: <T>() => (input: unknown) => ({
    valid: true,
    data: input as T & NonNullable<unknown>,
    errorMessage: undefined,
  }),
};

/** An open connection, and one that has ended. */
export class Connection {
  readonly client: Client;
  readonly #target: ServerTarget;
  readonly #open: Open;
  readonly #transport: Transport;
  #is_open = true;

  constructor(client: Client, target: ServerTarget, open: Open, transport: Transport) {
    this.client = client;
    this.#target = target;
    this.#open = open;
    this.#transport = transport;
    client.onclose = () => this.#is_open = false;
  }

  /** Connects to a server. @throws an error in words; the signal's reason on abort. */
  static async open(target: ServerTarget, signal: AbortSignal): Promise<Connection> {
    const { url, type } = target.config;
    if (url === undefined) return await attempt(target, signal, startProcess);
    if (type === "sse") return await attempt(target, signal, openStream, LEGACY);
    try {
      return await attempt(target, signal, openHttp);
    } catch (error) {
      // a server of the older transport has no POST at this address (MCP 2025-11-25, Backwards Compatibility)
      const status = error instanceof ConnectFailure && error.cause instanceof SdkHttpError &&
        error.cause.status;
      if (type !== undefined || status !== 404 && status !== 405) throw error;
      return await attempt(target, signal, openStream, LEGACY).catch(() => {
        throw error; // that of the transport that is not old
      });
    }
  }

  /** Connects to the same server again, which is not asked for its protocol. @throws as {@link open}. */
  again(signal: AbortSignal): Promise<Connection> {
    const discover = this.client.getDiscoverResult();
    const prior: PriorDiscovery = discover === undefined ? LEGACY : { kind: "modern", discover };
    return attempt(this.#target, signal, this.#open, prior);
  }

  /** Whether requests can still be answered. */
  get isOpen(): boolean {
    return this.#is_open;
  }

  /** Returns whether an error says that the server has forgotten the session, and has ignored the request. */
  lostSession(error: unknown): boolean {
    const transport = this.#transport;
    if (!(error instanceof SdkHttpError) || !(transport instanceof HttpTransport)) return false;
    if (transport.sessionId === undefined) return false;
    return error.status === 404 || error.status === 400 && /session/i.test(String(error.data.text));
  }

  /** Returns what went wrong, with the end of what a process wrote to its error output. */
  wordsOf(error: unknown): string {
    return error instanceof ConnectFailure ? error.message : wordsOf(error, this.#transport, this.#target);
  }

  /** Ends the connection, and the process of the server if there is one. */
  async close(): Promise<void> {
    await this.client.close();
    await this.#transport.close();
  }
}

const LEGACY = { kind: "legacy" } as const;

type Open = (target: ServerTarget) => Transport;

const startProcess: Open = ({ name, config, grant, limits }) =>
  new ProcessTransport(programOf(name, config, grant.run), limits.max_result_bytes);
const openHttp: Open = (target) => new HttpTransport(new URL(target.config.url!), accessOf(target));
const openStream: Open = (target) => new SseTransport(new URL(target.config.url!), accessOf(target));

function accessOf({ config: { headers = {} }, grant: { net }, limits }: ServerTarget) {
  return { net, headers, max_bytes: limits.max_result_bytes };
}

/** Thrown when a server cannot be used; its message is for people. */
export class ConnectFailure extends Error {}

async function attempt(
  target: ServerTarget,
  signal: AbortSignal,
  open: Open,
  prior?: PriorDiscovery,
): Promise<Connection> {
  const { name, config, limits: { connect_timeout_s } } = target;
  const timeout = connect_timeout_s * 1000;
  let transport: Transport | undefined;
  let late = false;
  const stop = () => void transport?.close();
  const timer = setTimeout(() => {
    late = true;
    stop();
  }, timeout);
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    transport = open(target);
    const client = clientFor(
      target,
      transport instanceof ProcessTransport ? Math.min(PROBE_MS, timeout) : timeout,
    );
    const options = { timeout, maxTotalTimeout: timeout, ...(prior ? { prior } : {}) };
    await client.connect(transport, options);
    return new Connection(client, target, open, transport);
  } catch (error) {
    await transport?.close();
    signal.throwIfAborted();
    // an old server may end when it is asked a question of the new protocol, or leave it without an answer
    const unsure = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed;
    if (unsure && !late && !prior) return await attempt(target, signal, open, LEGACY);
    const advice = config.npm !== undefined && error instanceof Deno.errors.NotFound
      ? ". Packages of npm run in Deno: install it, so that deno is in the PATH, or use command"
      : "";
    const refusal = error instanceof SdkHttpError && transport instanceof HttpTransport
      ? transport.refusal
      : null;
    const fact = late
      ? `it took more than ${connect_timeout_s} s`
      : withoutSecrets(refusal ?? wordsOf(error, transport, target), target);
    throw new ConnectFailure(`Cannot connect to server "${name}": ${fact}${advice}`, { cause: error });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function clientFor({ ask }: ServerTarget, timeoutMs: number): Client {
  const client = new Client({ name: "preamp", version: "1.0.0" }, {
    versionNegotiation: { mode: "auto", probe: { timeoutMs } },
    jsonSchemaValidator: NO_VALIDATION,
    capabilities: { elicitation: { form: {} } },
  });
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    const content = "requestedSchema" in params ? acceptedContent(params.requestedSchema) : null;
    const allowed = content !== null && await ask(params.message, content);
    return allowed ? { action: "accept", content: content as FormContent } : { action: "decline" };
  });
  return client;
}

type FormContent = NonNullable<ElicitResult["content"]>;

function wordsOf(error: unknown, transport: Transport | undefined, target: ServerTarget): string {
  const { stderr = "", failure = null } = transport instanceof ProcessTransport
    ? transport
    : transport instanceof SseTransport
    ? { failure: transport.failure }
    : {};
  const said = stderr.trim();
  const fact = (failure ?? factOf(error)).slice(0, 2_000);
  return withoutSecrets(said === "" ? fact : `${fact} (it wrote: ${said.slice(-500)})`, target);
}

/** Least characters of a value that is left out of a text: shorter ones are parts of words. */
const MIN_SECRET_CHARS = 6;

/** Returns a text without what the server was given in headers and variables, and may repeat. */
function withoutSecrets(text: string, { config: { headers = {}, env = {} } }: ServerTarget): string {
  const words = [...Object.values(headers), ...Object.values(env)].flatMap((
    value,
  ) => [value, ...value.split(" ")]);
  const secrets = words.filter(({ length }) => length >= MIN_SECRET_CHARS).sort((a, b) =>
    b.length - a.length
  );
  return secrets.reduce((left, secret) => left.replaceAll(secret, "[REDACTED]"), text);
}

function factOf(error: unknown): string {
  if (error instanceof ProtocolError) return `error ${error.code}: ${error.message}`;
  if (!(error instanceof SdkError)) return errorMessage(error);
  switch (error.code) {
    case SdkErrorCode.InvalidResult: // its message is the JSON of a validator
      return "its answer does not have the form of the protocol";
    case SdkErrorCode.ConnectionClosed:
      return "the connection ended before the answer";
  }
  return error.message;
}
