/**
 * Checks of a module's exports before and after `mount` was called, and of the type that they declare. Pure:
 * calls no code of the module.
 */
import type { MountOutcome } from "../../kernel/mount_diagnosis.ts";
import { type Check, CONTRACT, failed, passed } from "../../kernel/module_checks.ts";
import { checkConfig } from "../../sdk/config.ts";
import { type Finding, Findings } from "../../sdk/findings.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import { PERMISSION_KINDS } from "../../sdk/plan.ts";
import { SNAKE_CASE } from "../../sdk/snake_case_aliases.ts";
import type { ModuleType } from "../../sdk/types.ts";
import { formatPath, lastStep } from "../../sdk/value_path.ts";

/** All module types, in the order of the documentation. */
export const MODULE_TYPES: readonly ModuleType[] = [
  "tool",
  "provider",
  "hook",
  "orchestrator",
  "context",
];

/** Module type → prefix of module ids of this type. */
export const PREFIX: Readonly<Record<ModuleType, string>> = {
  tool: "tool",
  provider: "provider",
  hook: "hooks",
  orchestrator: "loop",
  context: "context",
};

/** Prefixes of ids, and the types' own names. */
const BY_PREFIX: ReadonlyMap<string, ModuleType> = new Map(
  MODULE_TYPES.flatMap((type) => [[PREFIX[type], type], [type, type]] as const),
);

/**
 * Returns the type that a module exports as `moduleType`, `__amplifier_module_type__` or `module.type`, or
 * undefined.
 */
export function typeOfExports(module: object): ModuleType | undefined {
  const { moduleType, __amplifier_module_type__, module: info } = module as Record<string, unknown>;
  const stated = [moduleType, __amplifier_module_type__, isObject(info) ? info.type : undefined];
  return stated.flatMap((value) => MODULE_TYPES.find((type) => type === value) ?? [])[0];
}

/** Returns the type of a module by the prefix of its id, or undefined: `hooks-tool-dedupe` is a hook. */
export function typeOfId(id: string): ModuleType | undefined {
  const [prefix = ""] = id.replace(/^amplifier-module-/, "").split("-");
  return BY_PREFIX.get(prefix);
}

/**
 * Returns the type that any word of a module's id names, or undefined: a guess for a module that mounted
 * nothing.
 */
export function typeOfWords(id: string): ModuleType | undefined {
  return id.split("-").map((word) => BY_PREFIX.get(word)).find((type) => type);
}

/** Whether calling an export returned a promise; undefined when the export was not called. */
export type Awaited = boolean | undefined;

/** Checks that the module exports a function `mount`. */
export function checkMountExists(module: object): Check {
  const mount = (module as { mount?: unknown }).mount;
  if (typeof mount === "function") return passed("mount_exists", "mount is a function");
  const received = mount === undefined ? "none" : typeof mount;
  return failed("mount_exists", `the module must export mount(coordinator, config): received ${received}`);
}

/** Checks that `mount` is async. */
// deno-lint-ignore ban-types -- a module may export any function
export function checkMountSignature(mount: Function, awaited: Awaited): Check {
  const name = "mount_signature";
  if (!isAsync(mount, awaited)) {
    return failed(name, "mount must be async: received a function that returns no promise");
  }
  return passed(name, "mount is async");
}

/**
 * Checks that the optional `onSessionReady` is an async function; returns null when the module does not
 * export it.
 */
export function checkSessionReady(module: object, awaited: Awaited): Check | null {
  const name = "on_session_ready_async";
  const found = sessionReadyOf(module);
  if (!found) return null;
  const { key, value } = found;
  if (typeof value !== "function") return failed(name, `${key} must be a function: received ${typeof value}`);
  if (!isAsync(value, awaited)) {
    return failed(name, `${key} must be async: received a function that returns no promise`);
  }
  return passed(name, `${key}(coordinator) is async`);
}

function sessionReadyOf(module: object): { key: string; value: unknown } | undefined {
  for (const key of ["onSessionReady", SNAKE_CASE.onSessionReady!]) {
    const value = (module as Record<string, unknown>)[key];
    if (value !== undefined) return { key, value };
  }
  return undefined;
}

/** Returns false only when a call of a function that is not declared `async` returned no promise. */
// deno-lint-ignore ban-types -- a module may export any function
function isAsync(fn: Function, awaited: Awaited): boolean {
  const tag = (fn as unknown as { [Symbol.toStringTag]?: string })[Symbol.toStringTag];
  return tag === "AsyncFunction" || awaited !== false;
}

const KNOWN_KINDS: ReadonlySet<string> = new Set(PERMISSION_KINDS);

/** Checks the module's description of itself: its export `module`, or the metadata that `mount` returned. */
export function checkInfo(module: object, type: ModuleType, outcome: MountOutcome): Check {
  const name = "module_info";
  const info = (module as { module?: unknown }).module;
  const example = `export const module = { id: "${PREFIX[type]}-…", type: "${type}", version: "1.0.0", … }`;
  const warn = (fact: string) => failed(name, `${fact}: write ${example}`, "warning");
  if (info === undefined) {
    const { name: id, version }: JsonObject = outcome.kind === "metadata" ? outcome.metadata : {};
    return typeof id === "string" && typeof version === "string"
      ? passed(name, `${id} ${version}`)
      : warn("the module does not describe itself");
  }
  if (!isObject(info)) return warn(`module must be an object: received ${typeof info}`);
  for (const key of ["id", "version"]) {
    if (typeof info[key] !== "string" || info[key] === "") return warn(`module.${key} must be a text`);
  }
  if (info.type !== type) {
    return warn(`module.type must be "${type}": received ${JSON.stringify(info.type) ?? "none"}`);
  }
  const { config_schema = null, permissions = {}, contract = CONTRACT } = info;
  if (contract !== CONTRACT) {
    return failed(
      name,
      `module.contract must be ${CONTRACT}: received ${JSON.stringify(contract) ?? "none"}`,
    );
  }
  if (config_schema !== null && !isObject(config_schema)) {
    return warn(`module.config_schema must be a JSON Schema: received ${typeof config_schema}`);
  }
  if (!isObject(permissions)) {
    return warn(`module.permissions must be an object: received ${typeof permissions}`);
  }
  const unknown = Object.keys(permissions).filter((kind) => !KNOWN_KINDS.has(kind));
  if (unknown.length > 0) {
    return warn(`module.permissions may have ${[...PERMISSION_KINDS].join(", ")}: received ${unknown[0]}`);
  }
  return passed(name, `${info.id} ${info.version}`);
}

/**
 * Checks a config against the schema that the module declares, as a plan is checked. A config that was not
 * given, {}, is left to `mount`.
 */
export function checkGivenConfig(module: object, config: JsonObject): Check[] {
  const info = (module as { module?: unknown }).module;
  const schema = isObject(info) ? info.config_schema : undefined;
  if (!isObject(schema) || Object.keys(config).length === 0) return [];
  const findings = new Findings();
  checkConfig(config, schema, { findings, path: ["config"], name: lastStep });
  const text = ({ path, message, hint }: Finding) =>
    `${formatPath(path)}: ${message}${hint === undefined ? "" : ` (${hint})`}`;
  const name = "config_accepted";
  const { errors, warnings } = findings;
  if (errors.length > 0) return errors.map((finding) => failed(name, text(finding)));
  if (warnings.length > 0) return warnings.map((finding) => failed(name, text(finding), "warning"));
  return [passed(name, "the schema of the module accepts the config")];
}
