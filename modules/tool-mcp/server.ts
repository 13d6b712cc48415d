/** One server of a plan: starts or reaches it, reads its tools, calls them. */
import {
  Client,
  type ElicitResult,
  type jsonSchemaValidator,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  StreamableHTTPClientTransport,
  type Tool as Definition,
  type Transport,
} from "@modelcontextprotocol/client";
import {
  errorMessage,
  type GrantedPermissions,
  type JsonObject,
  type ToolCallContext,
  toolFailure,
} from "preamp/base";
import type { ServerConfig } from "./config.ts";
import { Deadline } from "./deadline.ts";
import { fetchWithin } from "./http_access.ts";
import { ProcessTransport } from "./process_transport.ts";
import { programOf } from "./programs.ts";
import { acceptedContent, type Ask } from "./questions.ts";
import { lineOf, resultOf, resultOfContents, resultOfPrompt } from "./result.ts";

/** What a connection may take. */
export interface ServerLimits {
  readonly timeout_s: number;
  readonly connect_timeout_s: number;
  readonly max_result_bytes: number;
}

/** Most tools of a server, and characters of one definition. */
const MAX_TOOLS = 500;
const MAX_DEFINITION_CHARS = 64 * 1024;
/** Time after which a process that does not answer the first question of the new protocol has the old one. */
const PROBE_MS = 10_000;
/** The time of a call is {@link Deadline}'s: this one is longer than any. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** Most reports of progress of one call that are shown. */
const MAX_PROGRESS = 100;

/**
 * What a server returns is not checked against its own schema: the model reads it either way, and a server
 * could choose a pattern that takes hours.
 */
const NO_VALIDATION: jsonSchemaValidator = {
  getValidator: <T>() => (input: unknown) => ({
    valid: true,
    data: input as T & NonNullable<unknown>,
    errorMessage: undefined,
  }),
};

/** A connected server. */
export class McpServer {
  readonly name: string;
  readonly definitions: readonly Definition[];
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #limits: ServerLimits;
  /** Times of the calls that wait for an answer. */
  readonly #deadlines: Set<Deadline>;

  private constructor(
    name: string,
    client: Client,
    transport: Transport,
    definitions: readonly Definition[],
    limits: ServerLimits,
    deadlines: Set<Deadline>,
  ) {
    this.#deadlines = deadlines;
    this.name = name;
    this.#client = client;
    this.#transport = transport;
    this.definitions = definitions;
    this.#limits = limits;
  }

  /**
   * Connects to a server and reads its tools.
   *
   * @param grant What the plan grants; a server of the operator has all.
   * @param ask Answers what the server asks a person.
   * @throws an error in words that name the server.
   */
  static async connect(
    name: string,
    config: ServerConfig,
    grant: Pick<GrantedPermissions, "net" | "run">,
    limits: ServerLimits,
    ask: Ask,
  ): Promise<McpServer> {
    const deadlines = new Set<Deadline>();
    const { client, transport } = await connected(name, config, grant, limits, async (message, content) => {
      if (deadlines.size === 0) return false; // without a call no person expects a question
      for (const deadline of deadlines) deadline.stop();
      const allowed = await ask(name, message, content);
      for (const deadline of deadlines) deadline.restart();
      return allowed;
    });
    try {
      const timeout = limits.connect_timeout_s * 1000;
      const { tools } = client.getServerCapabilities()?.tools
        ? await client.listTools({}, { timeout, maxTotalTimeout: timeout })
        : { tools: [] };
      checkSizes(tools);
      return new McpServer(name, client, transport, tools, limits, deadlines);
    } catch (error) {
      await client.close();
      throw new Error(`Cannot read the tools of server "${name}": ${wordsOf(error, transport)}`);
    }
  }

  /** Returns whether the server has resources or prompts. */
  has(kind: "resources" | "prompts"): boolean {
    return this.#client.getServerCapabilities()?.[kind] !== undefined;
  }

  /** Calls a tool. What goes wrong is a result in words for the model. */
  call(tool: string, input: JsonObject, call?: ToolCallContext): Promise<unknown> {
    return this.#answer(tool, call, async (options) => {
      return resultOf(await this.#client.callTool({ name: tool, arguments: input }, options));
    });
  }

  /** Lists the resources, or reads one. */
  resources(uri: string | undefined, call?: ToolCallContext): Promise<unknown> {
    return this.#answer("resources", call, async (options) => {
      if (uri !== undefined) return resultOfContents(await this.#client.readResource({ uri }, options));
      const { resources } = await this.#client.listResources({}, options);
      const { resourceTemplates } = await this.#client.listResourceTemplates({}, options).catch(() => ({
        resourceTemplates: [], // a server may have none of them
      }));
      const lines = [
        ...resources.map((one) => lineOf(one.uri, one)),
        ...resourceTemplates.map((one) => lineOf(one.uriTemplate, one)),
      ];
      return lines.join("\n") || "The server has no resources now";
    });
  }

  /** Lists the prompts, or gets one. */
  prompts(name: string | undefined, values: JsonObject = {}, call?: ToolCallContext): Promise<unknown> {
    return this.#answer("prompts", call, async (options) => {
      if (name !== undefined) {
        const texts = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
        return resultOfPrompt(await this.#client.getPrompt({ name, arguments: texts }, options));
      }
      const { prompts } = await this.#client.listPrompts({}, options);
      const lines = prompts.map((one) => {
        const fields = (one.arguments ?? []).map((field) => `${field.name}${field.required ? "" : "?"}`);
        return lineOf(`${one.name}(${fields.join(", ")})`, one);
      });
      return lines.join("\n") || "The server has no prompts now";
    });
  }

  async #answer(
    what: string,
    call: ToolCallContext | undefined,
    request: (options: RequestOptions) => Promise<unknown>,
  ): Promise<unknown> {
    const deadline = new Deadline(this.#limits.timeout_s, call?.signal);
    this.#deadlines.add(deadline);
    let reports = 0;
    try {
      return await request({
        timeout: NO_TIMEOUT_MS,
        signal: deadline.signal,
        onprogress({ progress, total, message }) {
          deadline.restart();
          if (++reports > MAX_PROGRESS) return;
          call?.progress(message ?? (total === undefined ? String(progress) : `${progress} of ${total}`));
        },
      });
    } catch (error) {
      if (call?.signal.aborted) throw error;
      const fact = deadline.signal.aborted
        ? errorMessage(deadline.signal.reason)
        : wordsOf(error, this.#transport);
      return toolFailure(`Server "${this.name}" did not answer ${what}: ${fact}`, { type: "mcp_failed" });
    } finally {
      deadline.end();
      this.#deadlines.delete(deadline);
    }
  }

  /** Ends the connection, and the process of the server if there is one. */
  async close(): Promise<void> {
    await this.#client.close();
  }
}

type FormContent = NonNullable<ElicitResult["content"]>;

interface Connected {
  readonly client: Client;
  readonly transport: Transport;
}

async function connected(
  name: string,
  config: ServerConfig,
  grant: Pick<GrantedPermissions, "net" | "run">,
  limits: ServerLimits,
  ask: (message: string, content: JsonObject) => Promise<boolean>,
): Promise<Connected> {
  const timeout = limits.connect_timeout_s * 1000;
  const attempt = async (prior?: { kind: "legacy" }): Promise<Connected> => {
    const transport = config.url === undefined
      ? new ProcessTransport(programOf(name, config, grant.run), limits.max_result_bytes)
      : httpTransport(config.url, config.headers, grant.net, limits.max_result_bytes);
    const client = new Client({ name: "preamp", version: "1.0.0" }, {
      versionNegotiation: {
        mode: "auto",
        ...(config.url === undefined ? { probe: { timeoutMs: Math.min(PROBE_MS, timeout) } } : {}),
      },
      jsonSchemaValidator: NO_VALIDATION,
      capabilities: { elicitation: { form: {} } },
    });
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const content = "requestedSchema" in params ? acceptedContent(params.requestedSchema) : null;
      const allowed = content !== null && await ask(params.message, content);
      return allowed ? { action: "accept", content: content as FormContent } : { action: "decline" };
    });
    try {
      await client.connect(transport, {
        timeout,
        maxTotalTimeout: timeout,
        ...(prior ? { prior } : {}),
      });
      return { client, transport };
    } catch (error) {
      await transport.close();
      // an old server may end when it is asked a question of the new protocol
      const ended = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed;
      if (ended && config.url === undefined && !prior) return await attempt({ kind: "legacy" });
      const advice = config.npm !== undefined && error instanceof Deno.errors.NotFound
        ? ". Packages of npm run in Deno: install it, so that deno is in the PATH, or use command"
        : "";
      throw new Error(`Cannot connect to server "${name}": ${wordsOf(error, transport)}${advice}`);
    }
  };
  return await attempt();
}

function httpTransport(
  url: string,
  headers: Record<string, string> | undefined,
  net: GrantedPermissions["net"],
  max_bytes: number,
): Transport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetchWithin(net, max_bytes),
    requestInit: { redirect: "manual", ...(headers ? { headers } : {}) },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 0,
      maxReconnectionDelay: 0,
      reconnectionDelayGrowFactor: 1,
    },
  });
}

function checkSizes(tools: readonly Definition[]): void {
  if (tools.length > MAX_TOOLS) {
    throw new Error(`it has ${tools.length} tools; at most ${MAX_TOOLS} are read`);
  }
  const seen = new Set<string>();
  for (const tool of tools) {
    const chars = JSON.stringify(tool).length;
    if (chars > MAX_DEFINITION_CHARS) {
      throw new Error(
        `the definition of a tool has ${chars} characters; at most ${MAX_DEFINITION_CHARS} are read`,
      );
    }
    if (seen.has(tool.name)) throw new Error(`it has two tools ${JSON.stringify(tool.name.slice(0, 80))}`);
    seen.add(tool.name);
  }
}

/** Returns what went wrong, with the end of what a process wrote to its error output. */
function wordsOf(error: unknown, transport: Transport): string {
  const { stderr, failure } = transport instanceof ProcessTransport
    ? transport
    : { stderr: "", failure: null };
  const fact = failure ??
    (error instanceof ProtocolError ? `error ${error.code}: ${error.message}` : errorMessage(error));
  const said = stderr.trim();
  return said === "" ? fact.slice(0, 2_000) : `${fact.slice(0, 2_000)} (it wrote: ${said.slice(-500)})`;
}
