/** One server of a plan: reads its tools, calls them, and connects again when the connection has ended. */
import {
  type Client,
  ProtocolError,
  type RequestOptions,
  type Tool as Definition,
} from "@modelcontextprotocol/client";
import {
  errorMessage,
  isObject,
  type JsonObject,
  type PinnedTools,
  type ToolCallContext,
  toolChanges,
  toolFailure,
} from "preamp/base";
import { ConnectFailure, Connection, type ServerTarget } from "./connection.ts";
import { Deadline } from "./deadline.ts";
import { pinsOf } from "./definitions.ts";
import { MAX_ITEMS, NOTES } from "./messages.ts";
import { lineOf, resultOf, resultOfContents, resultOfPrompt } from "./result.ts";

/** Most pages of a list that are read. */
const MAX_PAGES = 64;
/** The time of a call is {@link Deadline}'s: this one is longer than any. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** Most reports of progress of one call that are shown. */
const MAX_PROGRESS = 100;

/** A server, with the tools that it had when the session began. */
export class McpServer {
  readonly name: string;
  readonly definitions: readonly Definition[];
  /** Sentences about what of its tools was repaired or left out. */
  readonly notes: readonly string[];
  readonly #target: ServerTarget;
  readonly #pins: PinnedTools | undefined;
  readonly #has: Readonly<Record<"resources" | "prompts", boolean>>;
  #connection: Connection;
  #opening: Promise<Connection> | null = null;
  /** Connections to end: also those that a call has given up, where others may still wait. */
  readonly #open: Set<Connection>;
  readonly #closing = new AbortController();
  /** Times of the calls that wait for an answer. */
  readonly #deadlines: Set<Deadline>;

  private constructor(
    target: ServerTarget,
    connection: Connection,
    { items, notes }: List<Definition>,
    deadlines: Set<Deadline>,
    pins: PinnedTools | undefined,
  ) {
    this.name = target.name;
    this.definitions = items;
    this.notes = notes;
    this.#target = target;
    this.#pins = pins;
    this.#connection = connection;
    this.#open = new Set([connection]);
    this.#deadlines = deadlines;
    const capabilities = connection.client.getServerCapabilities();
    this.#has = { resources: Boolean(capabilities?.resources), prompts: Boolean(capabilities?.prompts) };
  }

  /**
   * Connects to a server and reads its tools.
   *
   * @param pins The tools that a lock pins; a server that is started again must still have them.
   * @throws an error in words that name the server.
   */
  static async connect(target: ServerTarget, pins: PinnedTools | undefined): Promise<McpServer> {
    const deadlines = new Set<Deadline>();
    const asking: ServerTarget = {
      ...target,
      async ask(message, content) {
        if (deadlines.size === 0) return false; // without a call no person expects a question
        for (const deadline of deadlines) deadline.stop();
        const allowed = await target.ask(message, content);
        for (const deadline of deadlines) deadline.restart();
        return allowed;
      },
    };
    const connection = await Connection.open(asking, new AbortController().signal);
    try {
      return new McpServer(asking, connection, await toolsOf(connection, target), deadlines, pins);
    } catch (error) {
      await connection.close();
      throw new Error(`Cannot read the tools of server "${target.name}": ${connection.wordsOf(error)}`);
    }
  }

  /** Returns whether the server has resources or prompts. */
  has(kind: "resources" | "prompts"): boolean {
    return this.#has[kind];
  }

  /** Calls a tool. What goes wrong is a result in words for the model. */
  call(definition: Definition, input: JsonObject, call?: ToolCallContext): Promise<unknown> {
    const { outputSchema: _, ...toolDefinition } = definition; // a result is shown, whatever its own schema says
    const { name } = definition;
    return this.#answer(name, call, async (client, options) => {
      return resultOf(await client.callTool({ name, arguments: input }, { ...options, toolDefinition }));
    });
  }

  /** Lists the resources, or reads one. */
  resources(uri: string | undefined, call?: ToolCallContext): Promise<unknown> {
    return this.#answer("resources", call, async (client, options) => {
      if (uri !== undefined) {
        return resultOfContents(await client.request({ method: "resources/read", params: { uri } }, options));
      }
      const resources = await listOf(
        (params) => client.request({ method: "resources/list", params }, options),
        (page) => page.resources,
      );
      const templates = await listOf(
        (params) => client.request({ method: "resources/templates/list", params }, options),
        (page) => page.resourceTemplates,
      ).catch((error) => {
        if (error instanceof ProtocolError) return { items: [], notes: [] }; // a server may have none of them
        throw error;
      });
      return textOfList("resources", [...resources.notes, ...templates.notes], [
        ...resources.items.map((one) => lineOf(one.uri, one)),
        ...templates.items.map((one) => lineOf(one.uriTemplate, one)),
      ]);
    });
  }

  /** Lists the prompts, or gets one. */
  prompts(name: string | undefined, values: JsonObject = {}, call?: ToolCallContext): Promise<unknown> {
    return this.#answer("prompts", call, async (client, options) => {
      if (name !== undefined) {
        const texts = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
        const params = { name, arguments: texts };
        return resultOfPrompt(await client.request({ method: "prompts/get", params }, options));
      }
      const { items, notes } = await listOf(
        (params) => client.request({ method: "prompts/list", params }, options),
        (page) => page.prompts,
      );
      return textOfList(
        "prompts",
        notes,
        items.map((one) => {
          const fields = (one.arguments ?? []).map((field) => `${field.name}${field.required ? "" : "?"}`);
          return lineOf(`${one.name}(${fields.join(", ")})`, one);
        }),
      );
    });
  }

  async #answer(
    what: string,
    call: ToolCallContext | undefined,
    request: (client: Client, options: RequestOptions) => Promise<unknown>,
  ): Promise<unknown> {
    const deadline = new Deadline(this.#target.limits.timeout_s, call?.signal);
    this.#deadlines.add(deadline);
    let reports = 0;
    let connection = this.#connection;
    const options: RequestOptions = {
      timeout: NO_TIMEOUT_MS,
      signal: deadline.signal,
      onprogress({ progress, total, message }) {
        deadline.restart();
        if (++reports > MAX_PROGRESS) return;
        call?.progress(message ?? (total === undefined ? String(progress) : `${progress} of ${total}`));
      },
    };
    try {
      connection = await this.#connected(deadline, call);
      try {
        return await request(connection.client, options);
      } catch (error) {
        if (!connection.lostSession(error)) throw error;
        connection = await this.#connected(deadline, call, connection);
        return await request(connection.client, options);
      }
    } catch (error) {
      if (call?.signal.aborted) throw error;
      const fact = deadline.signal.aborted ? errorMessage(deadline.signal.reason) : connection.wordsOf(error);
      return toolFailure(`Server "${this.name}" did not answer ${what}: ${fact}`, { type: "mcp_failed" });
    } finally {
      deadline.end();
      this.#deadlines.delete(deadline);
    }
  }

  /**
   * Resolves to the connection: a new one where the server has ended. The time of the call waits for it.
   *
   * @param lost A connection whose session the server has forgotten.
   */
  async #connected(deadline: Deadline, call?: ToolCallContext, lost?: Connection): Promise<Connection> {
    if (this.#connection.isOpen && this.#connection !== lost) return this.#connection;
    call?.progress(`Connecting to server "${this.name}" again`);
    this.#opening ??= this.#reopen().finally(() => this.#opening = null);
    deadline.stop();
    const connection = await deadline.orEnd(this.#opening);
    deadline.restart();
    return connection;
  }

  async #reopen(): Promise<Connection> {
    const connection = await this.#connection.again(this.#closing.signal);
    this.#open.add(connection);
    try {
      await this.#checkPins(connection);
    } catch (error) {
      this.#open.delete(connection);
      await connection.close();
      throw error;
    }
    for (const old of this.#open) if (!old.isOpen) this.#open.delete(old);
    return this.#connection = connection;
  }

  /** @throws {Error} when a pinned server that was started again has other tools. */
  async #checkPins(connection: Connection): Promise<void> {
    if (this.#pins === undefined) return;
    const { items } = await toolsOf(connection, this.#target);
    const changes = toolChanges(this.name, this.#pins, await pinsOf(items));
    if (changes.length > 0) {
      throw new ConnectFailure(`its tools are not those of the lock any more: ${changes.join("; ")}`);
    }
  }

  /** Ends the connection, and the process of the server if there is one. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("The session has ended"));
    await this.#opening?.catch(() => {}); // it was ended
    await Promise.all([...this.#open].map((connection) => connection.close()));
  }
}

/** Items of all pages of a list, and what was repaired or left out. */
interface List<Item> {
  readonly items: Item[];
  readonly notes: string[];
}

/** Resolves to the tools of a server, each name once. */
async function toolsOf({ client }: Connection, { limits }: ServerTarget): Promise<List<Definition>> {
  if (!client.getServerCapabilities()?.tools) return { items: [], notes: [] };
  const timeout = limits.connect_timeout_s * 1000;
  const { items, notes } = await listOf(
    (params) => client.request({ method: "tools/list", params }, { timeout, maxTotalTimeout: timeout }),
    (page) => page.tools,
  );
  const seen = new Set<string>();
  const once = items.filter(({ name }) => {
    if (!seen.has(name)) return seen.add(name);
    notes.push(`a second tool ${JSON.stringify(name.slice(0, 80))} is left out`);
    return false;
  });
  return { items: once, notes };
}

/** Resolves to the items of the pages, until {@link MAX_ITEMS} are read or a page comes again. */
async function listOf<Page extends { nextCursor?: string | undefined; _meta?: unknown }, Item>(
  fetchPage: (params: { cursor?: string }) => Promise<Page>,
  itemsOf: (page: Page) => Item[],
): Promise<List<Item>> {
  const items: Item[] = [];
  const notes: string[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const page = await fetchPage(cursor === undefined ? {} : { cursor });
    items.push(...itemsOf(page));
    notes.push(...notesOf(page._meta));
    cursor = page.nextCursor;
    if (cursor === undefined || seen.has(cursor)) return { items, notes };
    if (items.length >= MAX_ITEMS || seen.size >= MAX_PAGES) {
      notes.push(`the list is too long: only its first ${items.length} items are read`);
      return { items, notes };
    }
    seen.add(cursor);
  }
}

function notesOf(meta: unknown): string[] {
  const notes = isObject(meta) ? meta[NOTES] : undefined;
  return Array.isArray(notes) ? notes.map(String) : [];
}

function textOfList(kind: string, notes: readonly string[], lines: readonly string[]): string {
  const named = notes.map((note) => `(${note})`);
  return [...lines, ...named].join("\n") || `The server has no ${kind} now`;
}
