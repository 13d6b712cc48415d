/**
 * A fake runtime in memory. The first word of the prompt selects the behaviour of a run: `answer TEXT`
 * completes, `hang` runs until the test ends it, `ask` awaits an approval, `fail` fails, `limit` reaches a
 * limit, `long N` has N deltas.
 */
import type { Readiness, Runtime } from "../../src/app/types.ts";
import type { Entry } from "../../src/kernel/host.ts";
import type {
  Approval,
  Caller,
  CreateOptions,
  Page,
  Recording,
  ReplayReport,
  Run,
  RunHandle,
  RunRequest,
  Runs,
  SessionObject,
} from "../../src/runs/types.ts";
import { PreampError } from "../../src/sdk/errors.ts";
import type { JsonObject } from "../../src/sdk/types.ts";

const TIME = "2026-11-21T10:00:00.000Z";
/** Number of entries on a page of `follow`. */
export const PAGE_SIZE = 10;

interface Stored {
  run: Run;
  caller: Caller;
  entries: Entry[];
  approvals: Approval[];
  /** Resolved and replaced on every change. */
  changed: PromiseWithResolvers<void>;
  log_expired: boolean;
}

/** A fake runtime whose state tests read and change. */
export class FakeRuntime implements Runtime {
  readonly limits = { max_body_bytes: 64 * 1024 };
  readonly runs: FakeRuns = new FakeRuns();
  /** Error that `plans.list` rejects with. */
  failure: unknown;
  readonly checked: unknown[] = [];
  drained: number[] = [];
  readiness: { ok: boolean; reasons: string[] } = { ok: true, reasons: [] };

  readonly plans: Runtime["plans"] = {
    check: (input) => {
      this.checked.push(input);
      return Promise.resolve({ ok: true, errors: [], warnings: [], plan_hash: "sha256-x" });
    },
    explain: (input) => Promise.reject(new PreampError("plan_invalid", JSON.stringify(input))),
    lock: () => Promise.resolve({ version: 1, modules: {}, files: {} }),
    diff: () => Promise.resolve({ widens: [], narrows: [], other: [] }),
    list: () =>
      this.failure === undefined
        ? Promise.resolve([{ name: "default", plan_hash: "sha256-x" }])
        : Promise.reject(this.failure),
  };

  readonly modules: Runtime["modules"] = {
    list: () => Promise.resolve([moduleListing]),
    get: (id) =>
      id === moduleListing.id ? Promise.resolve(moduleListing) : Promise.reject(notFound("module")),
  };

  ready(): Promise<Readiness> {
    return Promise.resolve({
      ...this.readiness,
      isolation: { worker: true, process: "no shell" },
      bundler: true,
    });
  }

  drain(grace_ms: number): Promise<void> {
    this.drained.push(grace_ms);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

const moduleListing = {
  id: "tool-calculator",
  name: "tool-calculator",
  type: "tool",
  mount_point: "tools",
  version: "1.0.0",
  description: "Calculates",
  permissions: null,
  config_schema: null,
};

/** Fake runs in memory. */
export class FakeRuns implements Runs {
  readonly stored = new Map<string, Stored>();
  /** Arguments of `create`, in order. */
  readonly created: { request: RunRequest; caller: Caller; options: CreateOptions }[] = [];
  /** Error that the next `create` rejects with. */
  refusal: unknown;
  /** Number of pages that `follow` has returned. */
  pages = 0;
  /** Number of open `follow` calls. */
  following = 0;
  readonly cancelled: { id: string; mode: string }[] = [];
  readonly steered: string[] = [];
  readonly #keys = new Map<string, { id: string; body_hash: string }>();
  #count = 0;

  create(request: RunRequest, caller: Caller, options: CreateOptions = {}): Promise<RunHandle> {
    this.created.push({ request, caller, options });
    if (this.refusal !== undefined) {
      const refusal = this.refusal;
      this.refusal = undefined;
      return Promise.reject(refusal);
    }
    const key = options.idempotency && `${caller.namespace} ${options.idempotency.key}`;
    const known = key === undefined ? undefined : this.#keys.get(key);
    if (known && known.body_hash !== options.idempotency?.body_hash) {
      return Promise.reject(
        new PreampError("idempotency_conflict", "Cannot start a run: the key was used with another body"),
      );
    }
    if (known) return this.handle(caller, known.id);
    const stored = this.#begin(request, caller);
    if (key && options.idempotency) {
      this.#keys.set(key, { id: stored.run.id, body_hash: options.idempotency.body_hash });
    }
    if (request.on_disconnect === "cancel") {
      const cancel = () => void this.cancel(caller, stored.run.id, "immediate");
      if (options.signal?.aborted) cancel();
      options.signal?.addEventListener("abort", cancel);
    }
    return this.handle(caller, stored.run.id);
  }

  #begin(request: RunRequest, caller: Caller): Stored {
    const id = `run_${++this.#count}`;
    const prompt = typeof request.prompt === "string" ? request.prompt : JSON.stringify(request.prompt);
    const [word, ...rest] = prompt.split(" ");
    const session_id = request.session_id ?? `ses_${this.#count}`;
    const stored: Stored = {
      run: newRun(id, session_id, request.metadata ?? {}),
      caller,
      entries: [],
      approvals: [],
      changed: Promise.withResolvers(),
      log_expired: false,
    };
    this.stored.set(id, stored);
    this.emit(id, "run:start", { status: "running" });
    if (word === "answer") {
      this.end(id, { status: "completed", stop_reason: "end_turn", output_text: rest.join(" ") });
    }
    if (word === "fail") {
      this.end(id, {
        status: "failed",
        stop_reason: "error",
        error: { code: "provider_auth", message: "the key was refused" },
      });
    }
    if (word === "limit") this.end(id, { status: "incomplete", stop_reason: "limit:max_tool_calls" });
    if (word === "long") {
      for (let index = 0; index < Number(rest[0]); index++) {
        this.emit(id, "content_block:delta", { sequence: index, delta: "é漢😀" });
      }
      this.end(id, { status: "completed", stop_reason: "end_turn" });
    }
    if (word === "ask") this.#ask(stored);
    return stored;
  }

  #ask(stored: Stored): void {
    const approval: Approval = {
      id: `apr_${stored.run.id}`,
      object: "approval",
      run_id: stored.run.id,
      session_id: stored.run.session_id,
      tool_name: "calculator",
      tool_call_id: "call_1",
      tool_input: { expression: "6*7" },
      args_hash: "sha256-args",
      action: "execute",
      risk_level: "low",
      prompt: "Allow calculator?",
      options: ["Allow", "Deny"] as Approval["options"],
      default: "deny",
      status: "pending",
      hook_name: "hooks-approval",
      created_at: TIME,
      expires_at: TIME,
    };
    stored.approvals.push(approval);
    this.change(stored.run.id, { status: "awaiting_approval", approvals: [approval] });
  }

  /** Appends an entry to a run's log. */
  emit(id: string, event: string, data: JsonObject): void {
    const stored = this.#stored(id);
    const { entries, run } = stored;
    entries.push({ seq: entries.length + 1, event, ts: TIME, run_id: id, session_id: run.session_id, data });
    this.#notify(stored);
  }

  /** Changes a run. */
  change(id: string, fields: Partial<Run>): void {
    const stored = this.#stored(id);
    stored.run = { ...stored.run, ...fields };
    this.#notify(stored);
  }

  /** Ends a run. */
  end(id: string, fields: Partial<Run>): void {
    this.change(id, { ...fields, approvals: [], ended_at: TIME });
    this.emit(id, "run:end", { run: this.#stored(id).run });
  }

  #notify(stored: Stored): void {
    stored.changed.resolve();
    stored.changed = Promise.withResolvers();
  }

  #stored(id: string): Stored {
    const stored = this.stored.get(id);
    if (!stored) throw notFound("run");
    return stored;
  }

  #own(caller: Caller, id: string): Stored {
    const stored = this.stored.get(id);
    if (!stored || stored.caller.namespace !== caller.namespace) throw notFound("run");
    return stored;
  }

  // deno-lint-ignore require-await -- its errors must be rejections
  async get(caller: Caller, id: string): Promise<Run> {
    return this.#own(caller, id).run;
  }

  // deno-lint-ignore require-await -- as above
  async handle(caller: Caller, id: string): Promise<RunHandle> {
    const { run } = this.#own(caller, id);
    return {
      id,
      session_id: run.session_id,
      current: () => this.#stored(id).run,
      settled: async (until) => {
        for (;;) {
          const stored = this.#stored(id);
          const attention = until === "attention" && stored.run.status === "awaiting_approval";
          if (stored.run.ended_at !== null || attention) return stored.run;
          await stored.changed.promise;
        }
      },
    };
  }

  // deno-lint-ignore require-await -- as above
  async list(caller: Caller, filter: Parameters<Runs["list"]>[1]): Promise<Page<Run>> {
    const { session_id, status, limit = 100, cursor = "0" } = filter;
    const all = [...this.stored.values()].filter((stored) => stored.caller.namespace === caller.namespace)
      .map(({ run }) => run).reverse()
      .filter((run) => (!session_id || run.session_id === session_id) && (!status || run.status === status));
    const end = Number(cursor) + limit;
    return { data: all.slice(Number(cursor), end), next_cursor: end < all.length ? String(end) : null };
  }

  // deno-lint-ignore require-await -- as above
  async remove(caller: Caller, id: string): Promise<void> {
    if (this.#own(caller, id).run.ended_at === null) {
      throw new PreampError("session_busy", "Cannot remove a run: it has not ended");
    }
    this.stored.delete(id);
  }

  // deno-lint-ignore require-await -- as above
  async cancel(caller: Caller, id: string, mode: "graceful" | "immediate"): Promise<Run> {
    const { run } = this.#own(caller, id);
    if (run.ended_at === null) {
      this.cancelled.push({ id, mode });
      this.end(id, { status: "cancelled", stop_reason: "cancelled" });
    }
    return this.#stored(id).run;
  }

  // deno-lint-ignore require-await -- as above
  async steer(caller: Caller, id: string, text: string): Promise<Run> {
    const { run } = this.#own(caller, id);
    if (run.ended_at !== null) throw new PreampError("run_ended", "Cannot steer a run: it has ended");
    this.steered.push(text);
    return run;
  }

  async recording(caller: Caller, id: string): Promise<Recording> {
    throw new PreampError("not_replayable", `Cannot replay run "${(await this.get(caller, id)).id}"`);
  }

  async replay(caller: Caller, recorded: string | Recording): Promise<ReplayReport> {
    const { events } = this.stored.get((await this.get(caller, String(recorded))).id)!.run.ended_at === null
      ? await this.recording(caller, String(recorded))
      : { events: [] };
    return { equal: events.length === 0 };
  }

  async rerun(
    caller: Caller,
    id: string,
    from: { from_event: number; plan?: JsonObject | string },
  ): Promise<RunHandle> {
    const { metadata } = await this.get(caller, id);
    const { plan, from_event } = from;
    const request = { prompt: `answer again from ${from_event}`, metadata };
    return await this.create(plan === undefined ? request : { ...request, plan }, caller);
  }

  // deno-lint-ignore require-await -- as above
  async approvals(caller: Caller, id: string): Promise<Approval[]> {
    return this.#own(caller, id).approvals;
  }

  // deno-lint-ignore require-await -- as above
  async decide(...[caller, id, approval_id, answer]: Parameters<Runs["decide"]>): Promise<Approval> {
    const { approvals } = this.#own(caller, id);
    const index = approvals.findIndex((approval) => approval.id === approval_id);
    const approval = approvals[index];
    if (!approval) throw notFound("approval");
    if (approval.status !== "pending") {
      throw new PreampError(
        "approval_already_resolved",
        "Cannot answer the approval: it is already granted",
      );
    }
    if (answer.args_hash !== undefined && answer.args_hash !== approval.args_hash) {
      throw new PreampError(
        "approval_args_mismatch",
        "Cannot answer the approval: it is for other arguments",
      );
    }
    const status = answer.decision === "allow" ? "granted" : "denied";
    approvals[index] = { ...approval, ...answer, status, decided_by: caller.name, decided_at: TIME };
    this.end(id, { status: "completed", stop_reason: "end_turn", output_text: answer.decision });
    return approvals[index];
  }

  // deno-lint-ignore require-await -- as above
  async events(caller: Caller, id: string, options: { after?: number; limit?: number }): Promise<Entry[]> {
    const stored = this.#own(caller, id);
    if (stored.log_expired) throw new PreampError("log_expired", "Cannot read the log: it is gone");
    const { after = 0, limit = 100 } = options;
    return stored.entries.slice(after, after + limit);
  }

  async *follow(
    caller: Caller,
    id: string,
    { after = 0, signal }: { after?: number; signal?: AbortSignal },
  ): AsyncGenerator<Entry[]> {
    const aborted = Promise.withResolvers<void>();
    signal?.addEventListener("abort", () => aborted.resolve());
    this.following++;
    try {
      for (let seq = after; !signal?.aborted;) {
        const { entries, changed, run } = this.#own(caller, id);
        const page = entries.slice(seq, seq + PAGE_SIZE);
        if (page.length > 0) {
          this.pages++;
          seq += page.length;
          yield page;
        }
        if (page.at(-1)?.event === "run:end" || (page.length === 0 && run.ended_at !== null)) return;
        if (page.length === 0) await Promise.race([changed.promise, aborted.promise]);
      }
    } finally {
      this.following--;
    }
  }

  readonly sessions: Runs["sessions"] = {
    fork: async (caller, id, options = {}) => {
      const { turn } = options;
      const parent = await this.sessions.get(caller, id);
      return {
        ...parent,
        id: `${id}_fork`,
        parent_id: id,
        metadata: turn === undefined ? {} : { forked_from_turn: turn },
      };
    },
    list: (caller, { limit = 100 }) =>
      Promise.resolve({ data: this.#sessions(caller).slice(0, limit), next_cursor: null }),
    // deno-lint-ignore require-await -- as above
    get: async (caller, id) => this.#session(caller, id),
    // deno-lint-ignore require-await -- as above
    remove: async (caller, id) => {
      this.#session(caller, id);
      for (const [run_id, { run }] of this.stored) if (run.session_id === id) this.stored.delete(run_id);
    },
    // deno-lint-ignore require-await -- as above
    messages: async (caller, id) => {
      this.#session(caller, id);
      return Array.from({ length: 5 }, (_, index) => ({ role: "user", content: `message ${index}` }));
    },
  };

  #sessions(caller: Caller): SessionObject[] {
    const own = [...this.stored.values()].filter((stored) => stored.caller.namespace === caller.namespace);
    return [...Map.groupBy(own, ({ run }) => run.session_id)].map(([id, runs]) => ({
      id,
      object: "session",
      parent_id: null,
      plan_hash: null,
      run_count: runs.length,
      created_at: TIME,
      last_activity: TIME,
      status: {
        session_id: id,
        started_at: TIME,
        ended_at: TIME,
        status: "completed",
        total_messages: 0,
        tool_invocations: 0,
        tool_successes: 0,
        tool_failures: 0,
        total_input_tokens: 0,
        total_output_tokens: 0,
      },
      metadata: {},
    }));
  }

  #session(caller: Caller, id: string): SessionObject {
    const session = this.#sessions(caller).find((session) => session.id === id);
    if (!session) throw notFound("session");
    return session;
  }
}

function notFound(label: string): PreampError {
  return new PreampError("not_found", `Cannot find the ${label}: unknown id`);
}

function newRun(id: string, session_id: string, metadata: JsonObject): Run {
  return {
    id,
    object: "run",
    session_id,
    status: "running",
    stop_reason: null,
    output_text: "",
    output: [],
    turn_count: 0,
    tool_call_count: 0,
    usage: {
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 0,
      cache_read_tokens: 0,
      cache_write_tokens: 0,
      cost_usd: null,
    },
    limits: {
      max_iterations: 50,
      max_tool_calls: 200,
      max_total_tokens: 1_000_000,
      max_cost_usd: "5",
      max_duration_s: 600,
    },
    plan_hash: "sha256-x",
    lock_hash: null,
    warnings: [],
    approvals: [],
    error: null,
    metadata,
    context: { tokens: 0, budget: 0, level: 0, compactions: 0 },
    isolation: {},
    created_at: TIME,
    ended_at: null,
    events_url: `/v1/runs/${id}/events`,
  };
}
