/**
 * What a module is, found by mounting it once on a sandbox coordinator and taking it down again (behaviour.md §3.5). The rules
 * are the kernel's, the same that a session holds a module to.
 */
import {
  classifyMountReturn,
  diagnoseEmptyMount,
  type MountOutcome,
} from "../../kernel/mounting/mount_diagnosis.ts";
import {
  checkInfo,
  checkMountExists,
  checkMountSignature,
  checkSessionReady,
  failed,
  missingProvides,
  passed,
  typeOfExports,
  typeOfId,
  typeOfWords,
} from "../../kernel/mounting/module_checks.ts";
import { POINT } from "../../kernel/mounting/mounting.ts";
import type { Mounted } from "../../kernel/mounting/mounts.ts";
import { type Check, checkInstance, TYPE_AT } from "../../kernel/mounting/validate_instance.ts";
import { errorMessage, errorName } from "../../sdk/errors.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { methodOf } from "../../sdk/snake_case_aliases.ts";
import { withinTime } from "../../sdk/testing/wait_for.ts";
import type { Cleanup, ModuleType } from "../../sdk/types.ts";
import { SandboxCoordinator } from "./probe_coordinator.ts";

/** How a module is tried. */
export interface StructureOptions {
  /** Id from its place: the folder or the file's name. */
  id: string;
  /** Its type, when the author says so. */
  type?: ModuleType | undefined;
  config: JsonObject;
  /** Milliseconds for each call into the module. */
  call_ms: number;
  /** Told before each call into the module. */
  onStep: (name: string) => void;
  /** Returns where in the author's files an error was thrown. */
  placeOf: (error: unknown) => string | undefined;
}

/** What was found. */
export interface Structure {
  type: ModuleType;
  provides: string[];
  checks: Check[];
  /** Whether there is something that a suite could be run on. */
  mounted: boolean;
}

/** What calling `mount` gave. */
interface Mounting {
  coordinator: SandboxCoordinator;
  returned?: unknown;
  /** Whether the call gave a promise. */
  awaited: boolean;
  error?: unknown;
}

/** Mounts a module once and resolves to what is right and wrong with it. Never rejects for what the module does. */
export async function checkStructure(module: object, options: StructureOptions): Promise<Structure> {
  const exists = checkMountExists(module);
  const declared = options.type ?? typeOfExports(module) ?? typeOfId(options.id);
  if (!exists.passed) return { type: declared ?? "tool", provides: [], checks: [exists], mounted: false };
  const mount = (module as { mount: () => unknown }).mount; // checkMountExists() says so
  const mounting = await callMount(mount, options);
  const { coordinator } = mounting;
  const type = declared ?? typeOfMounting(mounting) ?? typeOfWords(options.id) ?? "tool";
  const checks = [
    exists,
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
    checks.push(...coordinator.mounted.flatMap((one) => checkMounted(one, coordinator.mounted.length > 1)));
    checks.push(...await checkReady(module, coordinator, options), checkInfo(module, type, outcome));
    checks.push(...await checkObservability(coordinator));
  }
  checks.push(...await takeDown(coordinator, outcome, options));
  return { type, provides, checks, mounted: !("error" in mounting) && provides.length > 0 };
}

async function callMount(
  mount: () => unknown,
  { config, call_ms, onStep }: StructureOptions,
): Promise<Mounting> {
  const coordinator = new SandboxCoordinator();
  let awaited = false;
  onStep("mount()");
  try {
    const call = (mount as (...given: unknown[]) => unknown)(coordinator, structuredClone(config));
    awaited = isThenable(call);
    const returned = await withinTime(Promise.resolve(call), call_ms, `not done within ${call_ms / 1000} s`);
    return { coordinator, returned, awaited };
  } catch (error) {
    return { coordinator, awaited, error: error ?? new Error("threw nothing") };
  }
}

function isThenable(value: unknown): boolean {
  return (typeof value === "object" || typeof value === "function") && value !== null &&
    typeof (value as { then?: unknown }).then === "function";
}

/** Returns what a module that says nothing of itself is, by what it did; undefined when it did nothing. */
function typeOfMounting({ coordinator, returned }: Mounting): ModuleType | undefined {
  const [first] = coordinator.mounted;
  if (first) return TYPE_AT[first.point];
  if (coordinator.patterns.length > 0) return "hook";
  const types: readonly ModuleType[] = ["context", "provider", "hook", "tool"];
  return types.find((type) => classifyMountReturn(returned, type).kind === "instance");
}

/** Reads what `mount` returned; a returned instance is mounted when nothing else was, as a session does. */
async function adopt(type: ModuleType, { coordinator, returned }: Mounting): Promise<MountOutcome> {
  const outcome = classifyMountReturn(returned, type);
  if (outcome.kind !== "instance") return outcome;
  if (type !== "hook") {
    if (coordinator.mounted.length === 0) {
      await coordinator.mount(POINT[type], outcome.instance).catch(() => {}); // without a name it stays unmounted, and that is told
    }
    return outcome;
  }
  const { events } = outcome.instance;
  const handler = methodOf(outcome.instance, "handler");
  if (coordinator.patterns.length > 0 || !Array.isArray(events) || !handler) return outcome;
  for (const event of events) {
    coordinator.hooks.register(String(event), (told, data) => handler(told, data) as null);
  }
  return outcome;
}

/** Whether `mount` kept its promise: something is there, and what it returned fits. */
function checkMounting(
  module: object,
  type: ModuleType,
  provides: readonly string[],
  outcome: MountOutcome,
  { id, config }: StructureOptions,
): Check[] {
  if (provides.length === 0) {
    const { reason, message } = diagnoseEmptyMount({ id, type, module, config, outcome });
    const severity = reason === "not_configured" && type !== "orchestrator" && type !== "context"
      ? "warning"
      : "error";
    return [failed("protocol_compliance", message.replace(/^protocol_compliance: /, ""), severity)];
  }
  const told = type === "hook" ? `listens to ${provides.join(", ")}` : `mounted ${provides.join(", ")}`;
  return [passed("protocol_compliance", told), checkReturned(module, type, provides, outcome)];
}

/** A tool says what it is by an export or by what `mount` returns; nothing is returned by many modules of other types. */
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
          "mount() should return metadata, {name, version, provides}: received nothing",
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

/** Returns the checks of one mounted instance; `named`: several are told apart by name. */
function checkMounted({ point, name, module }: Mounted, named: boolean): Check[] {
  const type = TYPE_AT[point];
  const checks = checkedSafely(type, module).map((check) =>
    named ? { ...check, message: `${name}: ${check.message}` } : check
  );
  const own = readName(module);
  if ((point === "tools" || point === "providers") && own !== undefined && own !== name) {
    const fact = `mounted as "${name}", but its name is "${own}": models call it by one of them`;
    checks.push(failed(`${type}_name`, fact, "warning"));
  }
  return checks;
}

/** A getter of a stranger may throw anything. */
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
    return undefined; // told by tool_name
  }
}

async function checkReady(
  module: object,
  coordinator: SandboxCoordinator,
  { call_ms, onStep, placeOf }: StructureOptions,
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
    // alone on a sandbox it may miss what other modules publish: told, no error
    const fact = `it failed: ${thrownText(error, placeOf)}`;
    checks.push(failed("on_session_ready", fact, "warning"));
  }
  const signature = checkSessionReady(module, awaited);
  return signature ? [signature, ...checks] : checks;
}

async function checkObservability(coordinator: SandboxCoordinator): Promise<Check[]> {
  const told = await coordinator.collectContributions("observability.events");
  if (told.length === 0) return [];
  const name = "observability_events";
  const wrong = told.find((one) => !Array.isArray(one) || one.some((event) => typeof event !== "string"));
  return wrong === undefined
    ? [passed(name, told.flat().join(", "))]
    : [failed(name, "the contribution must return a list of event names", "warning")];
}

/** Runs every cleanup. One that fails is told and stops no other (behaviour.md §3.7). */
async function takeDown(
  coordinator: SandboxCoordinator,
  outcome: MountOutcome,
  { call_ms, onStep }: StructureOptions,
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

/** Returns the id that a module gives itself, or null. */
export function ownId(module: object): string | null {
  const { module: info } = module as { module?: unknown };
  return isObject(info) && typeof info.id === "string" && info.id !== "" ? info.id : null;
}

/** Returns an error of a module in one line, with the place in its files. */
export function thrownText(error: unknown, placeOf: (error: unknown) => string | undefined): string {
  const place = placeOf(error);
  return `${errorName(error)}: ${errorMessage(error)}${place === undefined ? "" : ` (${place})`}`;
}
