/**
 * Mounts the modules of a plan. For each: open it, call `mount` on a draft, classify the return value, check
 * what was mounted, publish it behind guards, and emit `module:mounted`; or discard the draft and emit
 * `module:skipped`.
 */
import { errorCode, errorMessage, hasCode, PreampError, readField } from "../sdk/errors.ts";
import { describe } from "../sdk/value_path.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { POINT } from "../sdk/plan.ts";
import { methodOf } from "../sdk/snake_case_aliases.ts";
import type { ErrorDetail, Module, ModuleSpec, MountPlan } from "../sdk/types.ts";
import { classifyMountReturn, diagnoseEmptyMount, type MountOutcome } from "./mount_diagnosis.ts";
import { ModuleCoordinator } from "./coordinator.ts";
import { withDeadline } from "./timeouts.ts";
import type { Host, HostClock, OpenedModule } from "./host.ts";
import { CONTRACT, missingProvides, problemsOf } from "./module_checks.ts";
import { runCleanup, type SessionParts } from "./session_parts.ts";

/** A module of a session that is opened, and then mounted. */
export interface SessionModule {
  readonly spec: ModuleSpec;
  readonly opened: OpenedModule;
  readonly config: JsonObject;
  readonly coordinator: ModuleCoordinator;
}

/** Thrown and returned when a module is to be skipped. */
class Skip {
  /**
   * @param cause Error that is the reason, if there is one.
   * @param is_stated Whether the module itself states the reason, and with it what to do.
   */
  constructor(
    readonly reason: string,
    readonly message: string,
    readonly cause?: unknown,
    readonly is_stated = false,
  ) {}
}

/** Reason of a {@link Skip}, with the code of its cause if there is one → the `reason_code` of a failure. */
const REASON_CODES: Readonly<Record<string, string>> = {
  "load_failed not_found": "missing_source",
  "load_failed module_invalid": "invalid_package_layout",
  "load_failed module_load_failed": "invalid_entry_point",
  "mount_failed not_found": "invalid_entry_point",
  "mount_failed module_invalid": "validation_failed",
  "contract_unsupported": "invalid_module_metadata",
  "protocol_compliance": "validation_failed",
};

/** Returns the module specs of a plan in mounting order. */
export function mountingOrder(plan: MountPlan): ModuleSpec[] {
  const { orchestrator, context, hooks_first } = plan.session;
  const first = [orchestrator, context];
  return hooks_first
    ? [...first, ...plan.hooks, ...plan.providers, ...plan.tools]
    : [...first, ...plan.providers, ...plan.tools, ...plan.hooks];
}

/**
 * Mounts one module and emits `module:mounted`, or `module:skipped` for a provider, tool or hook that fails;
 * resolves to the module, or to its place in the plan and the reason.
 * @throws {PreampError} `module_load_failed` for a required module that fails, or an error of fetching its
 * code.
 */
export async function mountModule(
  shared: SessionParts,
  spec: ModuleSpec,
): Promise<SessionModule | ErrorDetail> {
  const { session } = shared;
  let opened: OpenedModule;
  try {
    opened = await session.host.open(spec);
  } catch (error) {
    if (isFetchFailure(error)) throw error;
    const gates = isObject(error) && isObject(error.facts) && error.facts.gates === true;
    return await skip(shared, spec, new Skip("load_failed", errorMessage(error), error), gates);
  }
  const { module, placeOf, close } = opened;
  if (close) shared.guests.push(() => close.call(opened));
  if (placeOf) (session.error_locators ??= new Map()).set(idOf(spec), placeOf);
  const declares_gates = module.module?.gates === true;
  const config = checkContract(module) ??
    (opened.checkConfig ? await checkedConfig(opened) : opened.config);
  if (config instanceof Skip) return await skip(shared, spec, config, declares_gates);
  const coordinator = new ModuleCoordinator(shared, idOf(spec), spec.type, opened.permissions);
  const mounted: SessionModule = { spec, opened, config, coordinator };
  let outcome: MountOutcome;
  let names: string[];
  try {
    outcome = classifyMountReturn(await callMount(mounted, session.host.clock), spec.type);
    if ("cleanup" in outcome && outcome.cleanup) coordinator.registerCleanup(outcome.cleanup);
    if (outcome.kind === "instance") await adopt(mounted, outcome.instance);
    check(mounted, outcome, session.host);
    names = coordinator.commit(spec.instance_id);
  } catch (error) {
    const gates = declares_gates || coordinator.drafted_gate;
    await discardDraft(shared, coordinator);
    if (hasCode(error, "module_integrity_mismatch")) throw error; // what it uses is not what the lock pins
    if (error instanceof Skip) return await skip(shared, spec, error, gates);
    const at = placeOf?.(error);
    const message = at === undefined ? errorMessage(error) : `${at}: ${errorMessage(error)}`;
    return await skip(shared, spec, new Skip("mount_failed", message, error), gates);
  }
  await session.hooks.emit("module:mounted", {
    module_id: idOf(spec),
    type: spec.type,
    names,
    isolation: opened.isolation,
    integrity: opened.integrity,
    ...opened.stated ?? describeModule(module, outcome),
  });
  return mounted;
}

/** Returns a reason to skip a module that is written for another version of the module contract, or null. */
function checkContract({ module: info }: Module): Skip | null {
  const contract = isObject(info) ? info.contract : undefined;
  if (contract === undefined || contract === CONTRACT) return null;
  return new Skip(
    "contract_unsupported",
    `module.contract must be ${CONTRACT}, the version of the module contract of this runtime: received ${
      describe(contract)
    }`,
  );
}

/**
 * Returns the config that a module is mounted with; a schema that cannot be used is a reason to skip the
 * module.
 * @throws {PreampError} `plan_invalid`
 */
async function checkedConfig(opened: OpenedModule): Promise<JsonObject | Skip> {
  try {
    return await opened.checkConfig!(); // the caller checked that it exists
  } catch (error) {
    if (hasCode(error, "plan_invalid")) throw error;
    return new Skip("mount_failed", `Cannot check its config: ${errorMessage(error)}`);
  }
}

/** Calls `mount` with the module's load timeout. After it, a module can only change a discarded draft. */
function callMount({ spec, opened, config, coordinator }: SessionModule, clock: HostClock): unknown {
  const { module, load_timeout_s } = opened;
  const mount = methodOf(module, "mount");
  if (!mount) {
    const fact = "it must export mount(coordinator, config)";
    throw new PreampError("not_found", `Cannot mount module "${spec.module}": ${fact}`);
  }
  const returned = mount(coordinator, config);
  if (load_timeout_s === undefined) return returned;
  return withDeadline(
    Promise.resolve(returned),
    load_timeout_s * 1000,
    clock,
    () =>
      new Error(`Cannot mount module "${spec.module}": mount() did not finish within ${load_timeout_s} s`),
  );
}

function idOf(spec: ModuleSpec): string {
  return spec.instance_id ?? spec.module;
}

/**
 * Returns whether an error fails the request for a module of any type: its code cannot be fetched, or the
 * plan is invalid.
 */
function isFetchFailure(error: unknown): boolean {
  return isObject(error) && typeof error.code === "string" &&
    (/^module_(source_denied|integrity_mismatch|pin_required|fetch_|too_large)/.test(error.code) ||
      ["policy_refused", "isolation_unavailable", "lock_invalid", "overloaded"].includes(error.code));
}

/** Maximum characters of a text, and names in `provides`, of a module's description of itself. */
const MAX_DESCRIPTION = { text: 128, names: 64 };

/** Returns name, version and `provides` of a module, from its export `module` or what `mount` returned. */
function describeModule({ module: info }: Module, outcome: MountOutcome): JsonObject {
  const metadata = outcome.kind === "metadata" ? outcome.metadata : {};
  const exported: JsonObject = isObject(info) ? { ...info } : {};
  const description: JsonObject = {};
  for (const key of ["name", "version"]) {
    const value = metadata[key] ?? exported[key];
    if (typeof value === "string" && value !== "") description[key] = value.slice(0, MAX_DESCRIPTION.text);
  }
  const { provides } = metadata;
  if (Array.isArray(provides)) {
    description.provides = provides.slice(0, MAX_DESCRIPTION.names).map((name) =>
      String(name).slice(0, MAX_DESCRIPTION.text)
    );
  }
  return description;
}

/** Mounts the instance that `mount` returned, when the module mounted nothing itself. */
async function adopt({ coordinator, spec }: SessionModule, instance: JsonObject): Promise<void> {
  const { type, module } = spec;
  if (type !== "hook") {
    if (coordinator.drafted.length === 0) await coordinator.mount(POINT[type], instance);
  } else if (coordinator.drafted_events.length === 0 && Array.isArray(instance.events)) {
    const name = typeof instance.name === "string" ? instance.name : module;
    await coordinator.mount(POINT[type], instance, name);
  }
}

/**
 * Checks what the module mounted; warns of a return value of `mount` that does not match it.
 * @throws {Skip} when the module mounted nothing of its type, or an invalid object.
 */
function check(
  { spec, opened, config, coordinator }: SessionModule,
  outcome: MountOutcome,
  host: Host,
): void {
  const { module: id, type } = spec;
  const { drafted, drafted_events } = coordinator;
  const is_empty = type === "hook"
    ? drafted_events.length === 0 && drafted.length === 0
    : !drafted.some(({ point }) => point === POINT[type]);
  if (is_empty) {
    const { reason, message } = diagnoseEmptyMount({ id, type, module: opened.module, config, outcome });
    throw new Skip(reason, message, undefined, outcome.kind === "skipped");
  }
  const facts = drafted.flatMap((mounted) => problemsOf(mounted) ?? []);
  if (facts.length > 0) {
    throw new Skip("protocol_compliance", `Cannot mount module "${id}": ${facts.join("; ")}`);
  }
  if (outcome.kind === "unknown") {
    const fact = `returned ${outcome.received} from mount(): it was ignored`;
    host.warn("mount_return_unknown", `Module "${id}" ${fact}`);
  }
  if (outcome.kind !== "metadata") return;
  const names = type === "hook" ? drafted_events : drafted.map(({ name }) => name);
  const missing = missingProvides(outcome.metadata, names);
  if (missing.length > 0) {
    const fact = `lists ${missing.join(", ")} in provides, but did not mount it`;
    host.warn("module_provides_missing", `Module "${id}" ${fact}`);
  }
}

async function discardDraft(shared: SessionParts, coordinator: ModuleCoordinator): Promise<void> {
  for (const cleanup of coordinator.discard().reverse()) {
    try {
      await runCleanup(shared, cleanup);
    } catch {
      // the module's failure is reported; an error of its cleanup would hide it
    }
  }
}

/**
 * Emits `module:skipped`, and `module:load_failed` for a failure; throws for a required module. `gates`: the
 * module is a hook that can deny.
 */
async function skip(
  shared: SessionParts,
  spec: ModuleSpec,
  skipped: Skip,
  gates: boolean,
): Promise<ErrorDetail> {
  const { reason, message, cause } = skipped;
  const is_own = (reason === "mount_failed" || reason === "load_failed") &&
    shared.session.host.requires_tools === true;
  const label = labelOfRequired(spec, spec.type === "tool" && is_own || spec.type === "hook" && gates);
  if (label !== null) {
    throw new PreampError("module_load_failed", `Cannot initialize without ${label}: ${message}`, {
      cause,
      details: configDetails(spec, cause) ??
        [{ path: spec.path, message, ...hintOfRequired(spec, skipped) }],
    });
  }
  await shared.session.hooks.emit("module:skipped", {
    module_id: idOf(spec),
    type: spec.type,
    reason,
    message,
  });
  if (reason !== "not_configured") { // it declined, and did not fail
    await shared.session.hooks.emit("module:load_failed", {
      module_type: spec.type,
      module_id: spec.module,
      error: message,
      reason_code: REASON_CODES[`${reason} ${errorCode(cause) ?? ""}`.trim()] ?? "unknown",
      ...(spec.instance_id === undefined ? {} : { instance_id: spec.instance_id }),
    });
  }
  return { path: spec.path, message };
}

/** Returns the problems of a config that `mount` refused, by plan path; undefined for other errors. */
function configDetails(spec: ModuleSpec, error: unknown): ErrorDetail[] | undefined {
  const details = hasCode(error, "module_invalid") ? readField(error, "details") : undefined;
  if (!Array.isArray(details) || details.length === 0) return undefined;
  return details.filter(isObject).map(({ path, message, hint }) => ({
    path: `${spec.path}.${path}`,
    message: String(message),
    ...(typeof hint === "string" ? { hint } : {}),
  }));
}

/** Returns the label of a module that the session requires; null for an optional module. */
function labelOfRequired({ type, required, module }: ModuleSpec, by_default: boolean): string | null {
  if (type === "orchestrator") return type;
  if (type === "context") return "context manager";
  return required ?? by_default ? `${type} "${module}"` : null;
}

function hintOfRequired({ type, required }: ModuleSpec, { is_stated }: Skip): { hint?: string } {
  if (type === "orchestrator" || type === "context") return {};
  if (required === true && is_stated) return {};
  return {
    hint: required === true
      ? "fix the module, or remove required: true"
      : `${type === "hook" ? "the hook can deny: " : ""}fix it, or set required: false to run without it`,
  };
}
