/**
 * Checks a module's structure by mounting it once on a probe coordinator and unmounting it. The
 * coordinator is the test kit's, with the kernel's rules of mounting, as in a session; it records
 * registrations.
 */
import { classifyMountReturn, diagnoseEmptyMount, type MountOutcome } from "../../kernel/mount_diagnosis.ts";
import {
  type Check,
  checkInstance,
  failed,
  missingProvides,
  passed,
  TYPE_AT,
} from "../../kernel/module_checks.ts";
import { type PermissionKind, POINT } from "../../sdk/plan.ts";
import { type Mounted, resolveMount } from "../../kernel/mounts.ts";
import { errorMessage, errorName } from "../../sdk/errors.ts";
import { isObject, isThenable, type JsonObject } from "../../sdk/json.ts";
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { realClock, withinTime } from "../../testing/clocks.ts";
import type { Cleanup, ModuleType, Permissions } from "../../sdk/types.ts";
import type { HookHandler, HookOptions } from "../../sdk/hooks.ts";
import { TestCoordinator } from "../../testing/coordinator.ts";
import { EventRecorder } from "../../testing/hooks.ts";
import {
  checkGivenConfig,
  checkInfo,
  checkMountExists,
  checkMountSignature,
  checkSessionReady,
  typeOfExports,
  typeOfId,
  typeOfWords,
} from "./export_checks.ts";

/** Options of a validation. */
export interface ValidateOptions {
  /** Id from the module's location: the name of its folder or file. */
  id: string;
  /** Its type, if the author states it. */
  type?: ModuleType | undefined;
  /** Config that it is mounted with. */
  config: JsonObject;
  /** Whether to skip the suite; `mount` is then called exactly once. */
  structure_only: boolean;
  /** Kinds of permissions that the module has, each without bounds. */
  allow: readonly PermissionKind[];
  /** Timeout of each call into the module and of each case, in milliseconds. */
  call_ms: number;
  /** Called before each call into the module. */
  onStep: (name: string) => void;
  /** Returns the place of an error in the author's files. */
  placeOf: (error: unknown) => string | undefined;
}

/** Result of `checkStructure`. */
interface Structure {
  type: ModuleType;
  provides: string[];
  checks: Check[];
  /** Whether there is an instance that a suite can test. */
  mounted: boolean;
}

/** Result of calling `mount`. */
interface Mounting {
  coordinator: SandboxCoordinator;
  returned?: unknown;
  /** Whether the call returned a promise. */
  awaited: boolean;
  error?: unknown;
}

/** Mounts a module once and resolves to its checks. Never rejects because of the module. */
export async function checkStructure(module: object, options: ValidateOptions): Promise<Structure> {
  const exists = checkMountExists(module);
  const declared = options.type ?? typeOfExports(module) ?? typeOfId(options.id);
  if (!exists.passed) return { type: declared ?? "tool", provides: [], checks: [exists], mounted: false };
  const mount = (module as { mount: () => unknown }).mount; // checkMountExists() checked it
  const mounting = await callMount(mount, options);
  const { coordinator } = mounting;
  const type = declared ?? typeOfMounting(mounting) ?? typeOfWords(options.id) ?? "tool";
  const checks = [
    exists,
    ...checkGivenConfig(module, options.config),
    checkMountSignature(mount, mounting.error === undefined ? mounting.awaited : undefined),
  ];
  const outcome = await adopt(type, mounting);
  const own = coordinator.mounted.filter(({ point }) => point === POINT[type]);
  const provides = type === "hook" ? coordinator.patterns : own.map(({ name }) => name);
  if ("error" in mounting) {
    const { error } = mounting;
    checks.push(failed("protocol_compliance", `mount() failed: ${thrownText(error, options.placeOf)}`));
  } else {
    checks.push(...checkMounting(module, type, provides, outcome, options));
    checks.push(
      ...coordinator.mounted.flatMap((mounted) => checkMounted(mounted, coordinator.mounted.length > 1)),
    );
    checks.push(...await checkReady(module, coordinator, options), checkInfo(module, type, outcome));
    checks.push(...await checkObservability(coordinator));
  }
  checks.push(...await unmount(coordinator, outcome, options));
  return { type, provides, checks, mounted: !("error" in mounting) && provides.length > 0 };
}

async function callMount(
  mount: () => unknown,
  { config, allow, call_ms, onStep }: ValidateOptions,
): Promise<Mounting> {
  const coordinator = new SandboxCoordinator(allow);
  let awaited = false;
  onStep("mount()");
  try {
    const call = (mount as (...args: unknown[]) => unknown)(coordinator, structuredClone(config));
    awaited = isThenable(call);
    const returned = await withinTime(Promise.resolve(call), call_ms, `not done within ${call_ms / 1000} s`);
    return { coordinator, returned, awaited };
  } catch (error) {
    return { coordinator, awaited, error: error ?? new Error("threw nothing") };
  }
}

/** Infers a module's type from what it mounted; undefined if it mounted nothing. */
function typeOfMounting({ coordinator, returned }: Mounting): ModuleType | undefined {
  const [first] = coordinator.mounted;
  if (first) return TYPE_AT[first.point];
  if (coordinator.patterns.length > 0) return "hook";
  const types: readonly ModuleType[] = ["context", "provider", "hook", "tool"];
  return types.find((type) => classifyMountReturn(returned, type).kind === "instance");
}

/** Reads the return value of `mount`. A returned instance is mounted if nothing else was, as in a session. */
async function adopt(type: ModuleType, { coordinator, returned }: Mounting): Promise<MountOutcome> {
  const outcome = classifyMountReturn(returned, type);
  if (outcome.kind !== "instance") return outcome;
  if (type !== "hook") {
    if (coordinator.mounted.length === 0) {
      await coordinator.mount(POINT[type], outcome.instance).catch(() => {}); // without a name it remains unmounted, which is reported
    }
    return outcome;
  }
  const { events } = outcome.instance;
  const handler = methodOf(outcome.instance, "handler");
  if (coordinator.patterns.length > 0 || !Array.isArray(events) || !handler) return outcome;
  for (const event of events) {
    coordinator.hooks.register(String(event), (name, data) => handler(name, data) as null);
  }
  return outcome;
}

/** Checks whether `mount` mounted something of its type, and its return value. */
function checkMounting(
  module: object,
  type: ModuleType,
  provides: readonly string[],
  outcome: MountOutcome,
  { id, config }: ValidateOptions,
): Check[] {
  if (provides.length === 0) {
    const { reason, message } = diagnoseEmptyMount({ id, type, module, config, outcome });
    const severity = reason === "not_configured" && type !== "orchestrator" && type !== "context"
      ? "warning"
      : "error";
    return [failed("protocol_compliance", message.replace(/^protocol_compliance: /, ""), severity)];
  }
  const summary = type === "hook" ? `listens to ${provides.join(", ")}` : `mounted ${provides.join(", ")}`;
  return [passed("protocol_compliance", summary), checkReturned(module, type, provides, outcome)];
}

/**
 * Checks the return value of `mount`. A tool must describe itself there or in an export; other types may
 * return nothing.
 */
function checkReturned(
  module: object,
  type: ModuleType,
  provides: readonly string[],
  outcome: MountOutcome,
): Check {
  const name = "mount_return";
  switch (outcome.kind) {
    case "nothing":
      return type === "tool" && (module as { module?: unknown }).module === undefined
        ? failed(
          name,
          "mount() should return metadata, {name, version, provides}, and returned nothing",
          "warning",
        )
        : passed(name, "mount() returned nothing");
    case "unknown":
      return failed(name, `what mount() returned is ignored: received ${outcome.received}`, "warning");
    case "metadata": {
      const missing = missingProvides(outcome.metadata, provides);
      return missing.length === 0
        ? passed(name, "mount() returned metadata")
        : failed(name, `provides names what was not mounted: ${missing.join(", ")}`, "warning");
    }
    default:
      return passed(
        name,
        `mount() returned ${outcome.kind === "instance" ? "the instance" : `a ${outcome.kind}`}`,
      );
  }
}

/** Returns the checks of one mounted instance. `named`: messages begin with its name. */
function checkMounted({ point, name, module }: Mounted, named: boolean): Check[] {
  const type = TYPE_AT[point];
  const checks = checkedSafely(type, module).map((check) =>
    named ? { ...check, message: `${name}: ${check.message}` } : check
  );
  const own = readName(module);
  if ((point === "tools" || point === "providers") && own !== undefined && own !== name) {
    const fact = `mounted as "${name}", but its name is "${own}": models use only one of them`;
    checks.push(failed(`${type}_name`, fact, "warning"));
  }
  return checks;
}

/** Runs the checks. A getter of the module may throw anything. */
function checkedSafely(type: ModuleType, module: object): Check[] {
  try {
    return checkInstance(type, module);
  } catch (error) {
    return [failed("protocol_compliance", `what was mounted could not be read: ${errorMessage(error)}`)];
  }
}

function readName(module: object): string | undefined {
  try {
    const { name } = module as { name?: unknown };
    return typeof name === "string" && name !== "" ? name : undefined;
  } catch {
    return undefined; // reported by tool_name
  }
}

async function checkReady(
  module: object,
  coordinator: SandboxCoordinator,
  { call_ms, onStep, placeOf }: ValidateOptions,
): Promise<Check[]> {
  const ready = methodOf(module, "onSessionReady");
  if (!ready) return [checkSessionReady(module, undefined)].filter((check) => check !== null);
  onStep("onSessionReady()");
  let awaited: boolean | undefined;
  const checks: Check[] = [];
  try {
    const call = ready(coordinator);
    awaited = isThenable(call);
    await withinTime(Promise.resolve(call), call_ms, `not done within ${call_ms / 1000} s`);
  } catch (error) {
    // it may miss the capabilities of other modules here, so it is not an error
    const fact = `it failed: ${thrownText(error, placeOf)}`;
    checks.push(failed("on_session_ready", fact, "warning"));
  }
  const signature = checkSessionReady(module, awaited);
  return signature ? [signature, ...checks] : checks;
}

async function checkObservability(coordinator: SandboxCoordinator): Promise<Check[]> {
  const contributions = await coordinator.collectContributions("observability.events");
  if (contributions.length === 0) return [];
  const name = "observability_events";
  const wrong = contributions.find((events) =>
    !Array.isArray(events) || events.some((event) => typeof event !== "string")
  );
  return wrong === undefined
    ? [passed(name, contributions.flat().join(", "))]
    : [failed(name, "the contribution must return a list of event names", "warning")];
}

/** Runs every cleanup. A failed cleanup is reported, and the others still run. */
async function unmount(
  coordinator: SandboxCoordinator,
  outcome: MountOutcome,
  { call_ms, onStep }: ValidateOptions,
): Promise<Check[]> {
  if ("cleanup" in outcome && outcome.cleanup) coordinator.registerCleanup(outcome.cleanup as Cleanup);
  onStep("cleanup");
  try {
    const { failed: errors } = await withinTime(
      coordinator.cleanup(),
      call_ms,
      `not done within ${call_ms / 1000} s`,
    );
    return errors.map((error) => failed("cleanup", `cleanup failed: ${errorMessage(error)}`, "warning"));
  } catch (error) {
    return [failed("cleanup", `cleanup failed: ${errorMessage(error)}`, "warning")];
  }
}

/** Returns the id that a module exports, or null. */
export function ownId(module: object): string | null {
  const { module: info } = module as { module?: unknown };
  return isObject(info) && typeof info.id === "string" && info.id !== "" ? info.id : null;
}

/** Returns a module's error in one line, with its place in the module's files. */
export function thrownText(error: unknown, placeOf: (error: unknown) => string | undefined): string {
  const place = placeOf(error);
  return `${errorName(error)}: ${errorMessage(error)}${place === undefined ? "" : ` (${place})`}`;
}

class Registrations extends EventRecorder {
  readonly patterns: string[] = [];

  override register(event: string, handler: HookHandler, options?: number | HookOptions, name?: string) {
    const disposer = super.register(event, handler, options, name);
    this.patterns.push(event);
    return disposer;
  }
}

/** Returns the permissions of a module that has whole kinds of them. */
export function permissionsOf(allow: readonly PermissionKind[]): Permissions {
  return Object.fromEntries(allow.map((kind) => [kind, true]));
}

/** A coordinator in real time with nothing mounted. */
export class SandboxCoordinator extends TestCoordinator {
  /** Everything that was mounted, in order. */
  readonly mounted: Mounted[] = [];
  readonly #registrations: Registrations;

  constructor(allow: readonly PermissionKind[] = []) {
    const hooks = new Registrations(realClock);
    super({ clock: realClock, hooks, permissions: permissionsOf(allow) });
    this.#registrations = hooks;
  }

  /** The events that handlers were registered for, in order, without duplicates. */
  get patterns(): string[] {
    return [...new Set(this.#registrations.patterns)];
  }

  /** Mounts a module by the same rules as a session. */
  override async mount(point: string, module: object, name?: string | { name?: string }): Promise<void> {
    if (point !== "hooks") {
      const which = `object ${this.mounted.length + 1} that the module mounts`;
      this.mounted.push(resolveMount(point, module, name, which));
    }
    await super.mount(point, module, name);
  }
}
