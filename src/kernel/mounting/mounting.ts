/**
 * From a spec to a mounted module: open, draft, mount, read the return value, check what is there, publish it behind guards,
 * and say so; or undo it all and say that (trace.md, section 4, B; behaviour.md §1.6, §3.3-3.6).
 */
import { errorMessage, hasCode, PreampError } from "../../sdk/errors.ts";
import { describe } from "../../sdk/checks.ts";
import { registerHook } from "../../sdk/handler_list.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { methodOf, unboundMethodOf } from "../../sdk/snake_case_aliases.ts";
import type { Cleanup, ErrorDetail, Module, ModuleSpec, ModuleType, MountPlan } from "../../sdk/types.ts";
import { classifyMountReturn, diagnoseEmptyMount, type MountOutcome } from "./mount_diagnosis.ts";
import { ModuleCoordinator, type SessionParts } from "./coordinator.ts";
import { withDeadline } from "../timeouts.ts";
import type { OpenedModule } from "../host.ts";
import { CONTRACT, missingProvides } from "./module_checks.ts";
import { type Mounted, resolveMount } from "./mounts.ts";
import { problemsOf } from "./validate_instance.ts";

/** A module that is mounted. */
export interface MountedModule {
  readonly spec: ModuleSpec;
  readonly module: Module;
  readonly coordinator: ModuleCoordinator;
}

/** Where modules of a type are mounted. */
export const POINT: Readonly<Record<ModuleType, string>> = {
  orchestrator: "orchestrator",
  context: "context",
  provider: "providers",
  tool: "tools",
  hook: "hooks",
};

/** A module that was skipped: where the plan names it, and why. */
export interface SkippedModule {
  readonly skipped: ErrorDetail;
}

/** Why a module was skipped. */
class Skip {
  constructor(readonly reason: string, readonly message: string) {}
}

/** Returns the specs of a plan in mounting order. */
export function mountingOrder(plan: MountPlan): ModuleSpec[] {
  const { orchestrator, context, hooks_first } = plan.session;
  const first = [orchestrator, context];
  return hooks_first
    ? [...first, ...plan.hooks, ...plan.providers, ...plan.tools]
    : [...first, ...plan.providers, ...plan.tools, ...plan.hooks];
}

/**
 * Mounts one module and emits `module:mounted`, or `module:skipped` for a provider, tool or hook that fails.
 * @throws {PreampError} `module_load_failed` for an orchestrator or context that fails; whatever `host.open` throws.
 */
export async function mountModule(
  shared: SessionParts,
  spec: ModuleSpec,
): Promise<MountedModule | SkippedModule> {
  const { session } = shared;
  let opened: OpenedModule;
  try {
    const opening = session.host.open(spec);
    opened = opening instanceof Promise ? await opening : opening;
  } catch (error) {
    if (isFetchFailure(error)) throw error;
    return await skip(shared, spec, new Skip("load_failed", errorMessage(error)), {
      cause: error,
      gates: isObject(error) && isObject(error.facts) && error.facts.gates === true,
    });
  }
  const { placeOf, close } = opened;
  if (close) shared.guests.push(() => close.call(opened));
  if (placeOf) session.error_locators.set(idOf(spec), placeOf);
  const says_it_gates = opened.module.module?.gates === true;
  let config: JsonObject | Skip | null = foreignContract(opened.module);
  if (config === null) config = opened.checkConfig ? await checkedConfig(opened) : opened.config;
  if (config instanceof Skip) return await skip(shared, spec, config, { gates: says_it_gates });
  const coordinator = new ModuleCoordinator(shared, idOf(spec), spec.type === "orchestrator");
  let outcome: MountOutcome = { kind: "nothing" };
  let names: string[];
  try {
    const mount = methodOf(opened.module, "mount");
    if (!mount) {
      throw new PreampError(
        "module_invalid",
        `Cannot mount module "${spec.module}": it must export mount(coordinator, config): received none`,
      );
    }
    const mounted = mount(coordinator, config);
    outcome = classifyMountReturn(await withLoadTimeout(mounted, shared, spec, opened), spec.type);
    adopt(coordinator, spec, outcome);
    check(coordinator, spec, opened.module, config, outcome);
    names = commit(coordinator, spec);
  } catch (error) {
    const gates = says_it_gates || coordinator.drafted_gate;
    await discardDraft(shared, coordinator, outcome);
    if (error instanceof Skip) return await skip(shared, spec, error, { gates });
    const failure = new Skip("mount_failed", placedMessage(error, placeOf));
    return await skip(shared, spec, failure, { cause: error, gates });
  }
  if ("cleanup" in outcome && outcome.cleanup) coordinator.registerCleanup(outcome.cleanup);
  const told = announceMounted(shared, spec, opened, outcome, names);
  if (told) await told;
  return { spec, module: opened.module, coordinator };
}

/** Returns why a module that is written for another version of the contract is not mounted; null when it is not such a one. */
function foreignContract({ module: info }: Module): Skip | null {
  const contract = isObject(info) ? info.contract : undefined;
  if (contract === undefined || contract === CONTRACT) return null;
  return new Skip(
    "contract_unsupported",
    `module.contract must be ${CONTRACT}, the version of the module contract that this runtime has: received ${
      describe(contract)
    }`,
  );
}

/**
 * Returns the config that a module is mounted with; a schema that cannot be read is a reason to skip the module.
 * @throws {PreampError} `plan_invalid`
 */
async function checkedConfig(opened: OpenedModule): Promise<JsonObject | Skip> {
  try {
    return await opened.checkConfig!(); // the caller looked
  } catch (error) {
    if (hasCode(error, "plan_invalid")) throw error;
    return new Skip("mount_failed", `Cannot check its config: ${errorMessage(error)}`);
  }
}

/** Waits for a stranger's `mount` as long as it may take: what it does later stays in a draft that nobody publishes. */
function withLoadTimeout(
  mounted: unknown,
  { session }: SessionParts,
  { module }: ModuleSpec,
  { load_timeout_s }: OpenedModule,
): unknown {
  if (load_timeout_s === undefined) return mounted;
  return withDeadline(
    Promise.resolve(mounted),
    load_timeout_s * 1000,
    session.host.clock,
    () => new Error(`Cannot mount module "${module}": its mount was not done within ${load_timeout_s} s`),
  );
}

/** Returns what a module threw, and where in its files. */
function placedMessage(error: unknown, placeOf: OpenedModule["placeOf"]): string {
  const at = placeOf?.(error);
  return at === undefined ? errorMessage(error) : `${at}: ${errorMessage(error)}`;
}

function idOf(spec: ModuleSpec): string {
  return spec.instance_id ?? spec.module;
}

/** A module whose code cannot be had fails the request, whatever its type (http.md, Runs); so does a plan that is wrong. */
function isFetchFailure(error: unknown): boolean {
  return isObject(error) && typeof error.code === "string" &&
    (/^module_(source_denied|integrity_mismatch|pin_required|fetch_|too_large)/.test(error.code) ||
      ["policy_refused", "isolation_unavailable", "lock_invalid", "overloaded"].includes(error.code));
}

/** Publishes what the module mounted; returns the names it is mounted under, or the events it listens to. */
function commit(coordinator: ModuleCoordinator, spec: ModuleSpec): string[] {
  const rename = renaming(spec, coordinator.drafted);
  const names = spec.type === "hook"
    ? coordinator.drafted_events
    : coordinator.drafted.map((one) => rename(one).name);
  coordinator.commit(rename);
  return names;
}

function announceMounted(
  shared: SessionParts,
  spec: ModuleSpec,
  opened: OpenedModule,
  outcome: MountOutcome,
  names: string[],
): Promise<unknown> | void {
  const { session } = shared;
  if (outcome.kind === "unknown") {
    session.host.warn(
      "mount_return_unknown",
      `Module "${spec.module}" returned ${outcome.received} from mount(): it was ignored`,
    );
  }
  if (outcome.kind === "metadata") warnMissing(shared, spec, outcome.metadata, names);
  return session.hooks.notify("module:mounted", {
    module_id: idOf(spec),
    type: spec.type,
    names,
    isolation: opened.isolation,
    integrity: opened.integrity,
    ...opened.stated ?? statedOf(opened.module, outcome),
  });
}

/** Characters of a text, and names of a list, that a module says of itself. */
const MAX_STATED = { text: 128, names: 64 };

/** Returns what a module says of itself, in its export `module` or in what `mount` returned. */
function statedOf({ module: info }: Module, outcome: MountOutcome): JsonObject {
  const metadata = outcome.kind === "metadata" ? outcome.metadata : {};
  const exported: JsonObject = isObject(info) ? { ...info } : {};
  const stated: JsonObject = {};
  for (const key of ["name", "version"]) {
    const value = metadata[key] ?? exported[key];
    if (typeof value === "string" && value !== "") stated[key] = value.slice(0, MAX_STATED.text);
  }
  const { provides } = metadata;
  if (Array.isArray(provides)) {
    stated.provides = provides.slice(0, MAX_STATED.names).map((name) =>
      String(name).slice(0, MAX_STATED.text)
    );
  }
  return stated;
}

/** Mounts a returned instance when the module mounted nothing itself. */
function adopt(coordinator: ModuleCoordinator, spec: ModuleSpec, outcome: MountOutcome): void {
  if (outcome.kind !== "instance") return;
  if (spec.type === "hook") return adoptHook(coordinator, outcome.instance, spec.module);
  if (coordinator.drafted.length > 0) return;
  coordinator.addToDraft(resolveMount(POINT[spec.type], outcome.instance, undefined));
}

function adoptHook(coordinator: ModuleCoordinator, instance: JsonObject, id: string): void {
  if (coordinator.drafted_events.length > 0 || !Array.isArray(instance.events)) return;
  registerHook(coordinator.hooks, instance, typeof instance.name === "string" ? instance.name : id);
}

/** @throws {Skip} when the module mounted nothing of its type, or something that breaks the protocol. */
function check(
  coordinator: ModuleCoordinator,
  spec: ModuleSpec,
  module: Module,
  config: JsonObject,
  outcome: MountOutcome,
): void {
  const point = POINT[spec.type];
  const own = coordinator.drafted.filter((mounted) => mounted.point === point);
  if (
    spec.type === "hook"
      ? coordinator.drafted_events.length === 0 && coordinator.drafted.length === 0
      : own.length === 0
  ) {
    const { reason, message } = diagnoseEmptyMount({
      id: spec.module,
      type: spec.type,
      module,
      config,
      outcome,
    });
    throw new Skip(reason, message);
  }
  const facts = coordinator.drafted.map(problemsOf).filter((one) => one !== null);
  if (facts.length > 0) {
    throw new Skip("protocol_compliance", `Cannot mount module "${spec.module}": ${facts.join("; ")}`);
  }
}

/** With an `instance_id`, what the module mounted under its one default name is mounted under that id (behaviour.md §1.6). */
function renaming(spec: ModuleSpec, drafted: readonly Mounted[]): (mounted: Mounted) => Mounted {
  const { instance_id } = spec;
  if (instance_id === undefined) return asMounted;
  const own = drafted.filter((mounted) => mounted.point === POINT[spec.type]);
  if (own.length !== 1) return asMounted;
  return (mounted) =>
    mounted === own[0] && (mounted.point === "tools" || mounted.point === "providers")
      ? { ...mounted, name: instance_id }
      : mounted;
}

function asMounted(mounted: Mounted): Mounted {
  return mounted;
}

function warnMissing(
  shared: SessionParts,
  spec: ModuleSpec,
  metadata: JsonObject,
  names: readonly string[],
): void {
  const missing = missingProvides(metadata, names);
  if (missing.length > 0) {
    shared.session.host.warn(
      "module_provides_missing",
      `Module "${spec.module}" says it provides ${missing.join(", ")}: not mounted`,
    );
  }
}

async function discardDraft(
  shared: SessionParts,
  coordinator: ModuleCoordinator,
  outcome: MountOutcome,
): Promise<void> {
  const cleanups = coordinator.discard();
  if ("cleanup" in outcome && outcome.cleanup) cleanups.push(outcome.cleanup);
  for (const cleanup of cleanups.reverse()) {
    try {
      await runCleanup(shared, cleanup);
    } catch {
      // the module failed already and is said to have; what its cleanup adds would hide that
    }
  }
}

/** @param failed What was thrown, and whether the module is a hook that decides what may happen. */
async function skip(
  shared: SessionParts,
  spec: ModuleSpec,
  skipped: Skip,
  { cause, gates }: { cause?: unknown; gates: boolean },
): Promise<SkippedModule> {
  const label = labelOfRequired(spec, gates);
  if (label !== null) {
    throw new PreampError("module_load_failed", `Cannot initialize without ${label}: ${skipped.message}`, {
      cause,
      details: [{ path: spec.path, message: skipped.message, ...hintOfRequired(spec) }],
    });
  }
  await shared.session.hooks.emit("module:skipped", {
    module_id: idOf(spec),
    type: spec.type,
    reason: skipped.reason,
    message: skipped.message,
  });
  return { skipped: { path: spec.path, message: skipped.message } };
}

/** Returns what a session cannot do without, in words; null when it can do without this module. */
function labelOfRequired({ type, required, module }: ModuleSpec, gates: boolean): string | null {
  if (type === "orchestrator") return type;
  if (type === "context") return "context manager";
  if (required ?? (type === "hook" && gates)) return `${type} "${module}"`;
  return null;
}

function hintOfRequired({ type, required }: ModuleSpec): { hint?: string } {
  if (type === "orchestrator" || type === "context") return {};
  return {
    hint: required === true
      ? "mend the module, or leave out required: true"
      : "the hook decides what may happen: mend it, or write required: false to run without it",
  };
}

/** Calls `onSessionReady` of every module, in mount order; a failure is an event and stops nobody. */
export function announceReady(
  shared: SessionParts,
  modules: readonly MountedModule[],
): Promise<void> | void {
  const waiting = modules.filter(({ module }) => unboundMethodOf(module, "onSessionReady") !== undefined);
  if (waiting.length > 0) return callSessionReady(shared, waiting);
}

async function callSessionReady(shared: SessionParts, modules: readonly MountedModule[]): Promise<void> {
  for (const { spec, module, coordinator } of modules) {
    const ready = methodOf(module, "onSessionReady")!; // it was looked for
    try {
      await ready(coordinator);
    } catch (error) {
      await shared.session.hooks.emit("module:on_session_ready_failed", {
        module_id: spec.module,
        error: errorMessage(error),
      });
    }
  }
}

/** What became of a session's cleanups: the data of `session:cleanup`. */
export interface CleanupReport {
  readonly ran: number;
  readonly failed: readonly { module_id: string; error: string }[];
}

/** Runs all cleanups in reverse order, each under its deadline. */
export function runCleanups(shared: SessionParts): Promise<CleanupReport> | CleanupReport {
  if (shared.cleanups.length === 0 && shared.guests.length === 0) return { ran: 0, failed: [] };
  return runEach(shared);
}

async function runEach(shared: SessionParts): Promise<CleanupReport> {
  const failed: { module_id: string; error: string }[] = [];
  const cleanups = shared.cleanups.splice(0).reverse();
  for (const { module_id, cleanup } of cleanups) {
    try {
      await runCleanup(shared, cleanup);
    } catch (error) {
      failed.push({ module_id, error: errorMessage(error) });
    }
  }
  if (shared.guests.length > 0) await endGuests(shared);
  return { ran: cleanups.length - failed.length, failed };
}

/** Ends every guest of the session, all at once; one that cannot be ended is said. */
export async function endGuests(shared: SessionParts): Promise<void> {
  const ended = await Promise.allSettled(shared.guests.splice(0).map((end) => end()));
  for (const one of ended) {
    if (one.status === "rejected") shared.session.host.warn("guest_not_ended", errorMessage(one.reason));
  }
}

async function runCleanup(shared: SessionParts, cleanup: Cleanup): Promise<void> {
  const { host, limits } = shared.session;
  const returned = cleanup();
  if (!isObject(returned) || typeof returned.then !== "function") return;
  await withDeadline(
    Promise.resolve(returned as unknown as PromiseLike<unknown>), // it has a `then`
    limits.cleanup_timeout_s * 1000,
    host.clock,
    () => new Error(`not done within ${limits.cleanup_timeout_s} s`),
  );
}
