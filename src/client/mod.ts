/**
 * `preamp/client`: the HTTP API of a Preamp server for Deno, Node 20 or later, and browsers, and what a
 * person sees of a run ({@linkcode RunTranscript}). No dependencies; the routes and objects are described in
 * src/docs/http.md.
 *
 * @example
 * ```ts ignore
 * import { PreampClient } from "preamp/client";
 *
 * const client = new PreampClient({ url: "http://127.0.0.1:8484" });
 * for await (const { seq, event } of client.stream({ prompt: "What is 6 × 7?" })) {
 *   console.log(seq, event);
 * }
 * ```
 *
 * @module
 */

import type { Approval, Data, Entry, Run } from "./objects.ts";
export type { Approval, Data, Entry, Run } from "./objects.ts";
export { hasEnded, messageOf, RunTranscript, textOf } from "./transcript.ts";
export { transcriptMarkdown } from "./transcript_markdown.ts";
export type {
  CallUsage,
  Compaction,
  Gauge,
  Item,
  ModelCall,
  NoticeItem,
  Question,
  QuestionItem,
  TextItem,
  Thread,
  ToolItem,
  ToolPhase,
  TranscriptUsage,
} from "./transcript_items.ts";

/** Options of {@linkcode PreampClient}. */
export interface ClientOptions {
  /** Base URL of the server, with its base path: `https://agents.example/preamp`. */
  readonly url: string | URL;
  /** API key, or a function that returns the current one. Default: none. */
  readonly key?: string | (() => string | undefined);
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Milliseconds a client waits at most between two attempts to reconnect. Default: 10,000. */
  readonly maxDelayMs?: number;
  /** Called when a stream lost its connection (`false`) and when it continues (`true`). Must not throw. */
  readonly onConnection?: (connected: boolean) => void;
}

/** Body of `POST /v1/runs`; only `prompt` is required. */
export interface RunRequest {
  readonly prompt: string | readonly Data[];
  /** Mount plan: its text (YAML or JSON) or the document. */
  readonly plan?: string | Data;
  /** Name of a plan of the server, in place of `plan`. */
  readonly plan_ref?: string;
  /** Model as `vendor/model`. */
  readonly model?: string;
  /** Mode of the plan, from this run of its session on; `none`: no mode. */
  readonly mode?: string;
  /** Absolute path of the folder that `${WORKSPACE}` means; of the person who has started the server. */
  readonly workspace?: string;
  readonly lock?: Data;
  readonly session_id?: string;
  readonly limits?: Data;
  readonly metadata?: Data;
  /** What happens to the run when the connection is lost. Default: `continue`. */
  readonly on_disconnect?: "continue" | "cancel";
  /** What happens when the session has a running run. Default: `reject`. */
  readonly if_busy?: "reject" | "queue" | "cancel";
}

/** What a model was sent in one call: src/docs/events.md#what-a-model-was-sent. */
export interface ModelRequest extends Data {
  readonly seq: number;
  readonly session_id: string;
  readonly messages: readonly Data[];
  readonly tools: readonly Data[];
  readonly options: Data;
  readonly tokens: { readonly messages: readonly number[]; readonly tools: number; readonly total: number };
  readonly usage: Data | null;
}

/** One page of a list; `next_cursor` is null on the last page. */
export interface Page<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

/** Filter and position of a list. */
export type Query = Readonly<Record<string, string | number | undefined>>;

/** Thrown when the server answers with a problem (RFC 9457); read `code`, not the message. */
export class PreampApiError extends Error {
  /** Stable code, such as `plan_invalid`; `http_502` for an answer that is not Preamp's. */
  readonly code: string;
  /** HTTP status. */
  readonly status: number;
  /** Findings about a document: `{path, message, line?, column?, hint?}`. */
  readonly details: readonly Data[];
  /** Id of the request in the server's log. */
  readonly requestId: string | undefined;

  /** Creates the error of a problem response. */
  constructor(status: number, body: unknown) {
    const error = isData(body) && isData(body.error) ? body.error : {};
    super(typeof error.message === "string" ? error.message : `The server answered with status ${status}`);
    this.name = "PreampApiError";
    this.status = status;
    this.code = typeof error.code === "string" ? error.code : `http_${status}`;
    this.details = Array.isArray(error.details) ? error.details : [];
    this.requestId = typeof error.request_id === "string" ? error.request_id : undefined;
  }
}

/** Where a stream begins. */
export interface StreamOptions {
  /** Number of the entry after which the stream begins. Default: 0, the whole log. */
  readonly after?: number;
  /** Ends the stream; the run continues unless its request says `"on_disconnect": "cancel"`. */
  readonly signal?: AbortSignal;
}

/**
 * Client of one server. It keeps no connection open. Every method rejects with {@linkcode PreampApiError} for
 * a problem response, and with the `TypeError` of `fetch` when the server cannot be reached.
 */
export class PreampClient {
  readonly #options: ClientOptions;
  readonly #base: string;

  /** Creates a client; sends nothing. */
  constructor(options: ClientOptions) {
    this.#options = options;
    this.#base = String(options.url).replace(/\/+$/, "");
  }

  /** Runs a prompt; resolves when the run ends or waits for a person. */
  run(body: RunRequest): Promise<Run> {
    return this.#json("POST", "/v1/runs", body, { "idempotency-key": crypto.randomUUID() });
  }

  /** Starts a run in the background; resolves once it is accepted. */
  start(body: RunRequest): Promise<Run> {
    const headers = { "idempotency-key": crypto.randomUUID() };
    return this.#json("POST", "/v1/runs", { ...body, background: true }, headers);
  }

  /**
   * Returns the entries of a run's log in order, until `run:end`: of a new run for a request, of an existing
   * run for an id. A lost connection is opened again, and the stream continues with the next entry.
   */
  async *stream(target: RunRequest | string, options: StreamOptions = {}): AsyncGenerator<Entry, void> {
    const { after, signal } = options;
    const { maxDelayMs = 10_000, onConnection = () => {} } = this.#options;
    // the key makes a second attempt the same run
    const headers = { accept: "text/event-stream", "idempotency-key": crypto.randomUUID() };
    let id = typeof target === "string" ? target : undefined;
    let [seq, opened] = [after ?? 0, false];
    for (let failures = 0;; failures++) {
      try {
        const response = id === undefined
          ? await this.#request("POST", "/v1/runs", target, headers, signal)
          : await this.#request("GET", `${runPath(id)}/events?after=${seq}`, undefined, headers, signal);
        id ??= response.headers.get("preamp-run-id") ?? undefined;
        if (failures > 0) onConnection(true);
        opened = true;
        if (response.status === 204) return; // the run has ended and has no later entry
        for await (const entry of entriesOf(response)) {
          if (entry.seq <= seq) continue;
          seq = entry.seq;
          failures = 0;
          yield entry;
          if (entry.event === "run:end") return;
        }
      } catch (error) {
        signal?.throwIfAborted();
        const lasts = error instanceof PreampApiError && error.status < 500 && error.status !== 429;
        if (!opened || lasts) throw error;
      }
      onConnection(false);
      await delay(Math.min(maxDelayMs, 250 * 2 ** failures), signal);
    }
  }

  /** Lists runs, newest first; `query` may have `session_id`, `status`, `limit` and `cursor`. */
  listRuns(query?: Query): Promise<Page<Run>> {
    return this.#list("/v1/runs", query);
  }

  /** Returns a run as it is now. */
  getRun(id: string): Promise<Run> {
    return this.#json("GET", runPath(id));
  }

  /** Returns the plan of a run as data and YAML. */
  getRunPlan(id: string): Promise<Data> {
    return this.#json("GET", `${runPath(id)}/plan`);
  }

  /** Deletes a run that has ended, and its log. */
  deleteRun(id: string): Promise<void> {
    return this.#json("DELETE", runPath(id));
  }

  /** Returns one page of a run's log; `query` may have `after`, `limit` and `cursor`. */
  listEvents(id: string, query?: Query): Promise<Page<Entry>> {
    return this.#list(`${runPath(id)}/events`, query);
  }

  /** Lists what models were sent in the calls of a run; `query` may have `seq`, `limit` and `cursor`. */
  listRequests(id: string, query?: Query): Promise<Page<ModelRequest>> {
    return this.#list(`${runPath(id)}/requests`, query);
  }

  /** Cancels a run. `graceful` lets its model call and its running tools finish. */
  cancel(id: string, mode: "graceful" | "immediate" = "graceful"): Promise<Run> {
    return this.#json("POST", `${runPath(id)}/cancel`, { mode });
  }

  /** Sends a text that the run delivers with its next provider request. */
  steer(id: string, text: string): Promise<Run> {
    return this.#json("POST", `${runPath(id)}/steer`, { text });
  }

  /** Raises limits of a run, such as `{max_cost_usd: "2"}`; one that waits at such a limit continues. */
  raiseLimits(id: string, limits: Data): Promise<Run> {
    return this.#json("POST", `${runPath(id)}/limits`, limits);
  }

  /** Puts back the files that an ended run has changed; returns which, and which not. */
  undo(id: string): Promise<Data> {
    return this.#json("POST", `${runPath(id)}/undo`);
  }

  /** Replays a run and says what the agent does differently. */
  replay(id: string): Promise<Data> {
    return this.#json("POST", `${runPath(id)}/replay`);
  }

  /** Starts a run in the background that continues after an entry of a run, with another `plan` if given. */
  rerun(id: string, body: { readonly from_event: number; readonly plan?: string | Data }): Promise<Run> {
    return this.#json("POST", `${runPath(id)}/replay`, body, { prefer: "respond-async" });
  }

  /** Lists the approvals of a run, pending and decided. */
  listApprovals(id: string): Promise<Page<Approval>> {
    return this.#list(`${runPath(id)}/approvals`);
  }

  /** Answers an approval, for exactly the arguments that it states. */
  answer(approval: Approval, decision: string, reason?: string): Promise<Approval> {
    const path = `${runPath(approval.run_id)}/approvals/${encodeURIComponent(approval.id)}`;
    return this.#json("POST", path, { decision, args_hash: approval.args_hash, reason });
  }

  /** Lists sessions, the last active first. */
  listSessions(query?: Query): Promise<Page<Data>> {
    return this.#list("/v1/sessions", query);
  }

  /** Returns a session. */
  getSession(id: string): Promise<Data> {
    return this.#json("GET", sessionPath(id));
  }

  /** Deletes a session. */
  deleteSession(id: string): Promise<void> {
    return this.#json("DELETE", sessionPath(id));
  }

  /** Returns the history of a session in pages. */
  listMessages(id: string, query?: Query): Promise<Page<Data>> {
    return this.#list(`${sessionPath(id)}/messages`, query);
  }

  /** Creates a session with the history up to a turn, or as it was before a run; by default all of it. */
  forkSession(id: string, at: { turn?: number; before_run?: string } = {}): Promise<Data> {
    return this.#json("POST", `${sessionPath(id)}/fork`, at);
  }

  /** Lists the named plans of the server. */
  listPlans(): Promise<Page<Data>> {
    return this.#list("/v1/plans");
  }

  /** Returns a named plan as data and YAML; `default` is the plan of requests that have none. */
  getPlan(name: string): Promise<Data> {
    return this.#json("GET", `/v1/plans/${encodeURIComponent(name)}`);
  }

  /**
   * Saves a plan under a name; it then has the operator's rights. For the person who has started the server
   * ({@link getCaller}).
   */
  savePlan(name: string, plan: string | Data): Promise<Data> {
    return this.#json("PUT", `/v1/plans/${encodeURIComponent(name)}`, { plan });
  }

  /** Returns the JSON Schema of plans, with the modules of the server, for editors. */
  getPlanSchema(): Promise<Data> {
    return this.#json("GET", "/v1/plan/schema");
  }

  /** Returns whose key this client has: `{name, namespace, owner}`. */
  getCaller(): Promise<Data> {
    return this.#json("GET", "/v1/caller");
  }

  /**
   * Lists the models that can run on the server, `{model, display_name, context_window, pricing?, …}`, and in
   * `errors` the providers that do not answer. For the person who has started the server.
   */
  listModels(): Promise<Page<Data> & { errors: readonly Data[] }> {
    return this.#json("GET", "/v1/models");
  }

  /** Calls a tool for plans with `{plan}` or `{plan_ref}`; `diff` takes `{from, to}`. */
  plans(tool: "check" | "explain" | "lock" | "diff", body: Data): Promise<Data> {
    return this.#json("POST", `/v1/plans/${tool}`, body);
  }

  #list<Item>(path: string, query: Query = {}): Promise<Page<Item>> {
    const pairs = Object.entries(query).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, `${value}`]]
    );
    return this.#json("GET", pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs)}`);
  }

  async #json<T>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<T> {
    const response = await this.#request(method, path, body, headers);
    if (response.status === 204) return undefined as T; // only methods without a result have this status
    const result = await response.json();
    // an answer that took long has status 200 before its problem is known
    if (isData(result) && isData(result.error) && typeof result.status === "number") {
      throw new PreampApiError(result.status, result);
    }
    return result;
  }

  async #request(
    method: string,
    path: string,
    body?: unknown,
    more: Record<string, string> = {},
    signal: AbortSignal | null = null,
  ): Promise<Response> {
    const { key, fetch = globalThis.fetch } = this.#options;
    const token = typeof key === "function" ? key() : key;
    const headers = new Headers({ accept: "application/json", ...more });
    if (token) headers.set("authorization", `Bearer ${token}`);
    if (body !== undefined) headers.set("content-type", "application/json");
    const text = body === undefined ? null : JSON.stringify(body);
    const response = await fetch(`${this.#base}${path}`, { method, headers, body: text, signal });
    if (!response.ok) throw new PreampApiError(response.status, await response.json().catch(() => undefined));
    return response;
  }
}

/**
 * The text of a run's answer, from the entries of its stream. A repeated model call replaces the text of a
 * call that was lost, so that the text may become shorter.
 *
 * @example
 * ```ts ignore
 * const answer = new AnswerText();
 * for await (const entry of client.stream({ prompt: "Hello" })) console.log(answer.add(entry));
 * ```
 */
export class AnswerText {
  /** The text so far; at the end the run's `output_text`. */
  text = "";
  #request: unknown = null;
  /** Indices of the blocks of the model call that are text. */
  readonly #blocks = new Set<unknown>();

  /** Processes the next entry; returns {@linkcode text}. */
  add({ event, data, parent_id }: Entry): string {
    if (event === "run:end") return this.text = (data.run as Run).output_text;
    if (parent_id !== undefined) return this.text; // of a sub-agent
    const is_own = data.request_id === this.#request;
    if (event === "content_block:start") {
      if (!is_own) this.#restart(data.request_id);
      if (data.block_type === "text") this.#blocks.add(data.block_index);
    } else if (event === "content_block:delta") {
      if (is_own && this.#blocks.has(data.block_index)) this.text += data.delta;
    } else if (event === "content_block:void" || event === "llm:stream_aborted") {
      if (is_own) this.#restart(null);
    }
    return this.text;
  }

  #restart(request: unknown): void {
    this.#request = request;
    this.#blocks.clear();
    this.text = "";
  }
}

function runPath(id: string): string {
  return `/v1/runs/${encodeURIComponent(id)}`;
}

function sessionPath(id: string): string {
  return `/v1/sessions/${encodeURIComponent(id)}`;
}

/** Reads server-sent events (WHATWG HTML §9.2.6) whose data is an entry. */
async function* entriesOf(response: Response): AsyncGenerator<Entry, void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let rest = "";
    let data = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      if (!value.includes("\n")) continue; // a long line is split once, when it is complete
      const lines = rest.split(/\r?\n/);
      rest = lines.pop()!;
      for (const line of lines) {
        if (line.startsWith("data:")) data += line.slice(5);
        else if (line === "" && data !== "") {
          yield JSON.parse(data);
          data = "";
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {}); // a connection that broke needs no cancellation
  }
}

function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = () => (clearTimeout(timer), reject(signal!.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", aborted), resolve()), ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null;
}
