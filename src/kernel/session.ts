/**
 * One session: initialise → execute → cleanup (trace.md, section 4, B-D). Puts the parts together and keeps their order;
 * what each part does is in its own file. Refuses to know where modules, time and storage come from: that is the host.
 */
import { CancellationToken } from "../sdk/cancellation.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { type JsonObject, toPlain, toPlainObject } from "../sdk/json.ts";
import { textOf } from "../sdk/messages.ts";
import type {
  ContextManager,
  Emission,
  Message,
  MountPlan,
  Orchestrator,
  Prompt,
  Provider,
  Tool,
} from "../sdk/types.ts";
import { askForApproval } from "./approvals.ts";
import type { Ceilings } from "./ceilings.ts";
import { ModuleCoordinator, type Shared } from "./coordinator.ts";
import { Core, type KernelLimits } from "./core.ts";
import { ContextHandle } from "./guards/context.ts";
import { guardProvider } from "./guards/provider.ts";
import { ToolHandle } from "./guards/tool.ts";
import { Hooks } from "./hooks.ts";
import type { Host } from "./host.ts";
import { Injections } from "./injections.ts";
import { announceReady, type MountedModule, mountingOrder, mountModule, runCleanups } from "./mounting.ts";
import { type Mounted, Mounts } from "./mounts.ts";
import { type Outcome, outcomeOf, type Returned } from "./outcome.ts";
import { SessionState } from "./state.ts";
import { type CallRecord, Turn } from "./turn.ts";
import { Watch } from "./watch.ts";

/** What a session is made of. */
export interface SessionOptions {
  plan: MountPlan;
  /** The plan as written; modules see it as `coordinator.config`. */
  written?: JsonObject;
  host: Host;
  ceilings: Ceilings;
  limits: KernelLimits;
  session_id: string;
  parent_id?: string | null;
  /** State and history of a continued session. */
  session_state?: JsonObject;
  history?: readonly Message[];
  /** Whether the session has run before: `session:resume` instead of `session:start`, no first system message. */
  continued?: boolean;
  /** The parent's token, which this session follows. */
  cancellation?: CancellationToken;
}

/** Options of {@link Session.execute}. */
export interface TurnOptions {
  /** Goes on with a turn that a crash interrupted. */
  resume?: boolean;
  /** Iterations the interrupted turn had begun. */
  iteration?: number;
}

/** One session of a run. */
export class Session {
  readonly cancellation: CancellationToken;
  readonly #options: SessionOptions;
  readonly #core: Core;
  readonly #watch: Watch;
  readonly #injections: Injections;
  readonly #mounts = new Mounts();
  readonly #shared: Shared;
  #modules: MountedModule[] = [];
  #initialized: Promise<void> | null = null;
  #announced = false;
  #executed = false;
  #cleaned = false;

  constructor(options: SessionOptions) {
    const { plan, host } = options;
    this.#options = options;
    this.cancellation = options.cancellation ?? new CancellationToken();
    const parent_id = options.parent_id ?? null;
    const state = new SessionState(options.session_state);
    const core = this.#core = new Core(
      host,
      plan,
      options.session_id,
      parent_id,
      state,
      options.ceilings,
      this.cancellation,
      options.limits,
    );
    this.#watch = new Watch(core);
    this.#injections = new Injections(core);
    core.hooks = new Hooks({
      clock: host.clock,
      begin: (event) => core.beginTurn(event),
      prepare: (event, data) => this.#watch.prepare(event, data),
      momentFields: () => momentFields(core.turn),
      settle: (event, emission, prepared) => {
        this.#watch.settle(event, emission, prepared);
        return core.writeEmission(event, emission, prepared);
      },
      warn: (code, message) => host.warn(code, message),
    }, { session_id: options.session_id, parent_id });
    this.#shared = {
      core,
      mounts: this.#mounts,
      config: toPlainObject(options.written ?? {}),
      capabilities: new Map(),
      contributors: new Map(),
      cleanups: [],
      publish: (mounted, module_id) => this.#publish(mounted, module_id),
      processHookResult: (result, event, hook_name) => this.#process(result, event, hook_name),
      cancel: (mode) =>
        void this.cancel(mode).catch((error) => host.warn("cancel_failed", errorMessage(error))),
      resetTurn: () => this.#injections.resetTurn(),
    };
  }

  /** Id of the session. */
  get session_id(): string {
    return this.#core.session_id;
  }

  /** What modules keep from run to run, as it stands. */
  get session_state(): JsonObject {
    return this.#core.state.snapshot();
  }

  /** Whether the orchestrator understands `resume`. */
  get resumable(): boolean {
    return this.#mounts.orchestrator?.resumable === true;
  }

  /** Turn and iteration that an entry of this moment belongs to. */
  get moment(): { turn_id?: string; iteration?: number } {
    return momentFields(this.#core.turn);
  }

  /** How full the last request was, as the guards measured it; for contexts that tell nothing themselves. */
  get context_usage(): { tokens: number; budget: number; level: number; compactions: number } {
    return { ...this.#core.request_size, level: 0, compactions: 0 };
  }

  /** Returns a capability that a module published, or null. */
  getCapability(name: string): unknown {
    return this.#shared.capabilities.get(name) ?? null;
  }

  /**
   * Mounts everything, once. Undoes it all when it fails.
   * @throws {PreampError} `module_load_failed`, or why a module's code could not be had.
   */
  initialize(): Promise<void> {
    return this.#initialized ??= this.#initialize().catch(async (error) => {
      this.#initialized = null;
      await runCleanups(this.#shared);
      this.#modules = [];
      throw error;
    });
  }

  async #initialize(): Promise<void> {
    const { plan, host, history, parent_id } = this.#options;
    for (const spec of mountingOrder(plan)) {
      const mounted = await mountModule(this.#shared, spec);
      if (mounted) this.#modules.push(mounted);
    }
    if (plan.providers.length > 0 && this.#mounts.providers.names.length === 0) {
      throw new PreampError(
        "module_load_failed",
        "Cannot initialize without provider: none of the plan's providers could be mounted",
      );
    }
    await announceReady(this.#shared, this.#modules);
    if (history && history.length > 0) await this.#context.load(history);
    if (parent_id) {
      await this.#core.hooks.emit("session:fork", {
        parent: parent_id,
        session_id: this.session_id,
        ...this.#metadata(),
      });
    }
    await host.accept();
  }

  /** Runs one turn to its end; whatever the modules do, it resolves. */
  async execute(prompt: Prompt, options: TurnOptions = {}): Promise<Outcome> {
    await this.initialize();
    const core = this.#core;
    if (this.#executed) this.cancellation.reset();
    this.#executed = true;
    this.#injections.resetTurn();
    const disarm = core.armStepSignal();
    core.ceilings.start();
    try {
      await this.#announce();
      const turn = core.turn = new Turn(core.host.newId("turn"), prompt);
      if (options.resume) {
        turn.started = true;
        turn.iteration = options.iteration ?? 0;
      }
      const returned = await this.#run(turn, prompt, options.resume === true);
      return await this.#close(turn, returned);
    } finally {
      core.turn = null;
      disarm();
      core.ceilings.stop();
    }
  }

  async #announce(): Promise<void> {
    if (this.#announced) return;
    this.#announced = true;
    const { continued, parent_id, plan } = this.#options;
    await this.#core.hooks.emit(continued ? "session:resume" : "session:start", {
      session_id: this.session_id,
      parent_id: parent_id ?? null,
      ...this.#metadata(),
    });
    if (!continued) {
      if (plan.system !== undefined) await this.#context.addMessage(systemMessage(plan.system));
    } else await this.#replaceSystem(plan.system);
  }

  #metadata(): JsonObject {
    const { metadata, raw } = this.#options.plan.session;
    return {
      ...(metadata && Object.keys(metadata).length > 0 ? { metadata } : {}),
      ...(raw ? { raw: this.#shared.config } : {}),
    };
  }

  /** A plan sent with a continued session replaces the earlier plan's system message, nobody else's (http.md). */
  async #replaceSystem(system: string | undefined): Promise<void> {
    const history = this.#options.history ?? [];
    const index = history.findIndex((message) =>
      message.role === "system" && message.metadata?.source === "plan"
    );
    const before = index < 0 ? undefined : history[index]!.content;
    if (before === system) return;
    const rest = history.filter((_, at) => at !== index);
    await this.#context.setMessages(system === undefined ? rest : [systemMessage(system), ...rest]);
  }

  async #run(turn: Turn, prompt: Prompt, resume: boolean): Promise<Returned> {
    const { orchestrator } = this.#mounts;
    const coordinator = this.#modules.find((module) => module.spec.type === "orchestrator")?.coordinator ??
      new ModuleCoordinator(this.#shared, "session");
    try {
      const text = await orchestrator!.execute(
        typeof prompt === "string" ? prompt : toPlain(prompt) as unknown as Prompt,
        this.#context,
        this.#mounts.providers.view,
        this.#mounts.tools.view,
        coordinator.hooks,
        resume ? { coordinator, resume } : { coordinator },
      );
      return { text: typeof text === "string" ? text : textOf(text) };
    } catch (error) {
      if (turn.limit === null && turn.denied === null && !this.cancellation.is_cancelled) {
        this.#core.host.warn("execution_failed", errorMessage(error), { error });
      }
      return { error };
    }
  }

  /** After the loop, whichever it was: the history closed, the events that it owes told, the outcome. */
  async #close(turn: Turn, returned: Returned): Promise<Outcome> {
    const core = this.#core;
    const { hooks } = core;
    await this.#tellResponse();
    for (const [id, name] of [...this.#context.open_calls]) {
      await this.#context.addMessage({
        role: "tool",
        tool_call_id: id,
        name,
        content: `Error: Tool '${name}' was not executed`,
      });
    }
    const outcome = outcomeOf(this.#core, turn, returned);
    const response = "text" in returned ? returned.text : outcome.error?.message ?? "";
    await core.beginTurn();
    if (outcome.status === "cancelled" && !turn.cancel_told) {
      await hooks.emit("cancel:completed", { was_immediate: this.cancellation.is_immediate });
    }
    if (!turn.ended) await hooks.emit("execution:end", { response, status: executionStatus(outcome) });
    if (turn.completed === null) {
      await hooks.emit("orchestrator:complete", {
        orchestrator: this.#options.plan.session.orchestrator.module,
        turn_count: turn.iteration,
        status: orchestratorStatus(outcome),
      });
    }
    return outcome;
  }

  /** Asks the turn to stop; `cancel:requested` is told once, at the first request. */
  async cancel(mode: "graceful" | "immediate"): Promise<void> {
    const first = !this.cancellation.is_cancelled;
    if (mode === "immediate") this.cancellation.requestImmediate();
    else this.cancellation.requestGraceful();
    if (!first) return;
    await this.#core.hooks.emit("cancel:requested", { state: this.cancellation.state });
    for (const error of await this.cancellation.triggerCallbacks()) {
      this.#core.host.warn("cancel_callback_failed", errorMessage(error));
    }
  }

  /** `session:end`, the cleanups in reverse order, `session:cleanup`; a second call does nothing. */
  async cleanup(status: string): Promise<void> {
    if (this.#cleaned) return;
    this.#cleaned = true;
    const { hooks } = this.#core;
    await hooks.emit("session:end", { session_id: this.session_id, status });
    const report = await runCleanups(this.#shared);
    await hooks.emit("session:cleanup", report);
  }

  get #context(): ContextHandle {
    return this.#mounts.context as ContextHandle;
  }

  #publish(mounted: Mounted, module_id: string): void {
    const { mounts } = this;
    const core = this.#core;
    let lost: unknown;
    switch (mounted.point) {
      case "orchestrator":
        lost = mounts.orchestrator;
        mounts.orchestrator = mounted.module as Orchestrator;
        break;
      case "context":
        lost = mounts.context;
        mounts.context = new ContextHandle(core, mounted.module as ContextManager, this.#injections);
        break;
      case "providers":
        lost = mounts.providers.put(
          mounted.name,
          guardProvider(core, mounted.module as Provider, mounted.name, {
            settleGates: () => this.#settleGates(),
            tellResponse: () => this.#tellResponse(),
          }),
        );
        break;
      case "tools": {
        const tool = mounted.module as Tool;
        const name = this.#advertisedName(mounted, tool, module_id);
        lost = mounts.tools.put(
          mounted.name,
          new ToolHandle(core, tool, mounted.name, name, (call) => this.#gateCall(call)),
        );
        break;
      }
      default:
        lost = mounts.resolver;
        mounts.resolver = mounted.module;
    }
    if (lost) {
      core.host.warn(
        "module_overwritten",
        `Module "${module_id}" took the place of another at ${mounted.point} "${mounted.name}"`,
      );
    }
  }

  get mounts(): Mounts {
    return this.#mounts;
  }

  /** One name is told to models: the instance id when there is one, else the tool's own (C42). */
  #advertisedName(mounted: Mounted, tool: Tool, module_id: string): string {
    if (mounted.name === module_id) return mounted.name;
    if (typeof tool.name !== "string" || tool.name === "" || tool.name === mounted.name) return mounted.name;
    this.#core.host.warn(
      "tool_name_mismatch",
      `Tool "${tool.name}" is mounted as "${mounted.name}": models are told "${tool.name}"`,
    );
    return tool.name;
  }

  /** Does what an emission asks for (behaviour.md §5.7); tells the turn how its gate came out. */
  async #process(result: Emission, event: string, hook_name?: string): Promise<Emission> {
    const subject = this.#watch.subjectOf(result);
    let settled: Emission = result;
    for (const injection of result.injections ?? []) {
      const admitted = await this.#injections.admit(hook_name ? { ...injection, hook_name } : injection);
      if (admitted === null) {
        settled = {
          ...settled,
          injections: settled.injections.filter((one) => one !== injection),
        };
      } else if (!admitted.ephemeral) await this.#store(this.#injections.toMessage(admitted, event));
    }
    for (const message of result.user_messages ?? []) {
      await this.#core.hooks.emit("user:notification", {
        message: message.message,
        level: message.level,
        source: message.source,
      });
    }
    if (result.action === "ask_user" && result.approval) {
      const outcome = await askForApproval(this.#core, result.approval, this.#approvalSubject(event, result));
      settled = outcome.allowed
        ? { ...settled, action: "continue", reason: null }
        : { ...settled, action: "deny", reason: outcome.reason };
    }
    if (subject && "call" in subject) settleCall(subject.call, settled);
    else if (subject) this.#settleGate(subject.gate.event, settled, () => subject.gate.processed = true);
    return settled;
  }

  async #store(message: Message): Promise<void> {
    const context = this.#mounts.context as ContextHandle | null;
    if (context === null) return;
    if (context.open_calls.size > 0) this.#injections.hold(message);
    else await context.addMessage(message);
  }

  #settleGate(event: string, settled: Emission, done: () => void): void {
    done();
    const { turn } = this.#core;
    if (turn && settled.action === "deny" && (event === "prompt:submit" || event === "provider:request")) {
      turn.denied = settled.reason;
    }
  }

  #approvalSubject(event: string, result: Emission): Parameters<typeof askForApproval>[2] {
    const subject = this.#watch.subjectOf(result);
    if (!subject || !("call" in subject)) {
      return {
        event,
        tool_name: null,
        tool_call_id: null,
        tool_input: null,
        risk_level: "low",
        data: result.data,
      };
    }
    const { call } = subject;
    const tool = this.#toolNamed(call.name);
    return {
      event,
      tool_name: call.name,
      tool_call_id: call.id,
      tool_input: call.input,
      risk_level: tool?.risk ?? "low",
      data: result.data,
    };
  }

  #toolNamed(name: string): Tool | undefined {
    const { tools } = this.#mounts;
    return tools.get(name) ?? tools.names.map((key) => tools.get(key)!).find((tool) => tool.name === name);
  }

  /** The gate of a tool call: emitted and processed here when the loop did not (architecture.md, Guards). */
  async #gateCall(call: CallRecord): Promise<void> {
    if (call.pre === null) {
      call.gated_here = true;
      await this.#core.hooks.emit("tool:pre", {
        tool_name: call.name,
        tool_call_id: call.id,
        tool_input: call.asked,
      });
    }
    if (call.gate === "pending" && call.pre !== null) await this.#process(call.pre as Emission, "tool:pre");
  }

  async #settleGates(): Promise<void> {
    const { turn } = this.#core;
    for (const gate of [turn?.prompt_gate, turn?.request_gate]) {
      if (gate && !gate.processed) await this.#process(gate.emission, gate.event);
    }
  }

  async #tellResponse(): Promise<void> {
    const { turn } = this.#core;
    if (turn === null || turn.untold_response === null) return;
    await this.#core.hooks.emit("provider:response", { response: toPlain(turn.response) });
  }
}

function settleCall(call: CallRecord, settled: Emission): void {
  if (call.gate !== "pending") return;
  call.gate = settled.action === "deny" ? "denied" : "allowed";
  call.reason = settled.reason ?? "";
}

function momentFields(turn: Turn | null): JsonObject {
  if (turn === null) return {};
  return turn.iteration > 0 ? { turn_id: turn.id, iteration: turn.iteration } : { turn_id: turn.id };
}

function systemMessage(text: string): Message {
  return { role: "system", content: text, metadata: { source: "plan" } };
}

function executionStatus(outcome: Outcome): string {
  return outcome.status === "cancelled" ? "cancelled" : outcome.status === "failed" ? "error" : "completed";
}

function orchestratorStatus(outcome: Outcome): string {
  if (outcome.status === "completed") return "success";
  if (outcome.status === "failed") return "error";
  return outcome.status === "cancelled" ? "cancelled" : "incomplete";
}
