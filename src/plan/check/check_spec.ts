/** Checks the modules of a plan: one spec, which is a bare id or an object, and the lists of specs. */
import type { ModuleType } from "../../sdk/contracts.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import { canonicalJson, isObject, type JsonObject, type JsonSchema } from "../../sdk/json.ts";
import type { ModuleSpec, Source } from "../../sdk/plan.ts";
import { describe, describeKind, formatPath, type Path } from "../../sdk/value_path.ts";
import { hasSpace } from "../../text/escape.ts";
import { parseSource, SOURCE_FORMS, type SourceOptions } from "../source/source.ts";
import { checkPermissions, PERMISSIONS_SCHEMA } from "./check_permissions.ts";
import { fitting } from "./field_checks.ts";

/** Isolation tiers, weakest first. */
export const TIERS = ["inline", "process"] as const;

/** Tier in which a module runs. */
export type Tier = typeof TIERS[number];

/** Sections that are lists of modules, with the type of their entries. */
export const LIST_SECTIONS: Readonly<Record<"providers" | "tools" | "hooks", ModuleType>> = {
  providers: "provider",
  tools: "tool",
  hooks: "hook",
};

/** Returns the specs of one section, whose path is `at`. Invalid specs are reported and left out. */
export function checkList(
  value: unknown,
  section: keyof typeof LIST_SECTIONS,
  at: Path,
  findings: Findings,
  options: SourceOptions,
): ModuleSpec[] {
  if (value === undefined) return [];
  const type = LIST_SECTIONS[section];
  if (!Array.isArray(value)) {
    const message = `Cannot read ${section}: must be a list: received ${describe(value)}`;
    findings.error(at, "type", message, `write ${section}: [${type}-…]`);
    return [];
  }
  const specs: ModuleSpec[] = [];
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const path = [...at, index];
    const spec = checkSpec(item, type, path, findings, options);
    if (!spec) continue;
    specs.push(spec);
    checkRepeated(spec, seen, path, findings);
  }
  return specs;
}

/**
 * Checks that no two entries of a list share an instance id, and that at most one entry of a provider module
 * has none. Warns about another module that is listed twice with the same config. `seen` remembers the
 * entries before.
 */
function checkRepeated(
  { module, type, instance_id, config }: ModuleSpec,
  seen: Set<string>,
  path: Path,
  findings: Findings,
): void {
  const key = instance_id !== undefined
    ? `instance_id ${instance_id}`
    : type === "provider"
    ? module
    : canonicalJson([module, config]);
  if (!seen.has(key)) seen.add(key);
  else if (instance_id !== undefined) {
    const message = `Cannot use instance_id ${describe(instance_id)}: another entry of this list has it`;
    findings.error([...path, "instance_id"], "duplicate_instance_id", message, "use a different one");
  } else if (type === "provider") {
    const message = `Cannot mount module "${module}" twice: only one entry may go without instance_id`;
    findings.error(path, "instance_id_required", message, "add an instance_id");
  } else {
    const message = `Module "${module}" is listed twice in this list with the same config`;
    findings.warn(path, "duplicate_module", message, "remove one, or give it its own config");
  }
}

/** Schemas of the keys of a module entry, for editors; of `permissions`, see {@link PERMISSIONS_SCHEMA}. */
export const SPEC_PROPERTIES: Readonly<Record<string, JsonSchema>> = {
  module: { type: "string", description: "The module's id" },
  source: {
    type: "string",
    description: "Where its code is: a URL, a path, npm:, jsr: or git+https:; none for a built-in module",
  },
  config: { type: "object", description: "Settings of the module" },
  instance_id: { type: "string", description: "The mounted name, when a module is used twice" },
  integrity: { type: "string", description: "sha256-…, the digest of the module's files" },
  permissions: PERMISSIONS_SCHEMA,
  isolation: {
    enum: TIERS,
    description: "Where it runs: in a process of its own, or inline, for trusted code",
  },
  required: {
    type: "boolean",
    description: "Whether the run fails when this module cannot be mounted; else it is skipped",
  },
};

const KEYS: ReadonlySet<string> = new Set(Object.keys(SPEC_PROPERTIES));
/** Upstream's settings call `instance_id` `id`. */
const ALIASES: ReadonlySet<string> = new Set(["id"]);
const SPEC_HINT = "write an id such as tool-calculator, or {module, source, config}";
const MAX_ID = 128;

/**
 * Returns the spec at `path`, or undefined if it is invalid. The section determines its type. In an overlay
 * a spec may lack a source, which the parent may have.
 */
export function checkSpec(
  value: unknown,
  type: ModuleType,
  path: Path,
  findings: Findings,
  options: SourceOptions,
): ModuleSpec | undefined {
  const place = formatPath(path);
  const before = findings.errors.length;
  const spec: ModuleSpec = { module: "", type, source: { kind: "builtin" }, config: {}, path: place };
  if (typeof value === "string") {
    checkId(value, path, findings);
    spec.module = value;
  } else if (isObject(value)) {
    checkKeys(value, KEYS, path, findings, "warning", ALIASES);
    spec.module = checkModule(value, path, place, findings);
    spec.config = configIn(value, path, findings, "config_type") ?? {};
    checkSource(value.source, spec, [...path, "source"], findings, options);
    checkInstance(value, spec, path, findings);
    checkProtections(value, spec, path, findings);
  } else {
    const message = `Cannot read ${place}: must be an id or an object: received ${describe(value)}`;
    findings.error(path, "type", message, SPEC_HINT);
  }
  return findings.errors.length === before ? spec : undefined;
}

function checkModule({ module }: JsonObject, path: Path, place: string, findings: Findings): string {
  const at = [...path, "module"];
  if (module === undefined) {
    findings.error(path, "module_required", `Cannot read ${place}: it names no module`, SPEC_HINT);
  } else if (typeof module !== "string") {
    const message = `Cannot read module: must be text: received ${describe(module)}`;
    findings.error(at, "module_type", message, SPEC_HINT);
  } else {
    checkId(module, at, findings);
    return module;
  }
  return "";
}

function checkId(id: string, at: Path, findings: Findings): void {
  if (id.trim() === "") {
    findings.error(at, "module_empty", "Cannot read module: it is empty", SPEC_HINT);
  } else if (id.length > MAX_ID || hasSpace(id)) {
    const form = `an id without spaces, at most ${MAX_ID} characters`;
    const message = `Cannot read module: must be ${form}: received ${describe(id)}`;
    findings.error(at, "module_invalid", message, SPEC_HINT);
  }
}

/** Returns the `config` of a spec or of a block; undefined if it is absent or invalid. */
export function configIn(
  { config }: JsonObject,
  path: Path,
  findings: Findings,
  code: string,
): JsonObject | undefined {
  if (config === undefined || isObject(config)) return config;
  const message = `Cannot read config: must be an object: received ${describeKind(config)}`;
  findings.error([...path, "config"], code, message, "leave it out, or write {}");
  return undefined;
}

function checkSource(
  source: unknown,
  spec: ModuleSpec,
  at: Path,
  findings: Findings,
  options: SourceOptions,
): void {
  if (source === undefined) return;
  if (typeof source !== "string" && !isObject(source)) {
    const message = `Cannot read source: must be text or an object: received ${describe(source)}`;
    findings.error(at, "source_type", message, SOURCE_FORMS);
    return;
  }
  const result = parseSource(source, options);
  if ("problem" in result) {
    findings.error(at, "source_invalid", `Cannot read source: ${result.problem}`, result.hint);
  } else if (isAmplifiers(result.source, spec.module, options)) {
    const message = `Module "${spec.module}" is built in; its source is not used: received ${
      describe(result.source.original)
    }`;
    const hint = `leave source out; preamp source add ${spec.module} <url> overrides the built-in module`;
    findings.warn(at, "source_builtin", message, hint);
  } else spec.source = result.source;
}

/**
 * Returns true if a source is Amplifier's own repository of the module, such as
 * `amplifier-module-loop-basic`.
 */
function isAmplifiers(
  source: Source,
  id: string,
  { builtins }: SourceOptions,
): source is Extract<Source, { kind: "url" }> {
  return source.kind === "url" && builtins?.has(id) === true &&
    source.git?.repository.endsWith(`/amplifier-module-${id}`) === true;
}

function checkInstance(fields: JsonObject, spec: ModuleSpec, path: Path, findings: Findings): void {
  for (const key of ["id", "instance_id"]) {
    const value = fields[key];
    if (value === undefined) continue;
    const at = [...path, key];
    if (typeof value !== "string" || value === "" || value.length > MAX_ID || hasSpace(value)) {
      const message =
        `Cannot read ${key}: must be a name without spaces, at most ${MAX_ID} characters: received ${
          describe(value)
        }`;
      findings.error(at, "instance_id_type", message);
    } else if (spec.instance_id !== undefined && spec.instance_id !== value) {
      const message = `Cannot read instance_id: it differs from id: received ${describe(value)}`;
      findings.error(at, "instance_id_type", message, "keep instance_id");
    } else spec.instance_id = value;
  }
}

function checkProtections(fields: JsonObject, spec: ModuleSpec, path: Path, findings: Findings): void {
  const { integrity, permissions, isolation, required } = fields;
  if (integrity !== undefined && checkIntegrity(integrity, [...path, "integrity"], findings)) {
    spec.integrity = integrity;
  }
  if (permissions !== undefined) {
    const checked = checkPermissions(permissions, [...path, "permissions"], findings);
    if (checked) spec.permissions = checked;
  }
  if (isolation === "worker") {
    spec.isolation = "process"; // of earlier versions
    const message = 'Reading isolation "worker" as "process": there is no tier between inline and process';
    findings.warn(
      [...path, "isolation"],
      "isolation_worker",
      message,
      "write process, or leave isolation out",
    );
  } else if (isolation !== undefined) {
    const tier = fitting<Tier>(isolation, { enum: [...TIERS] }, [...path, "isolation"], findings);
    if (tier) spec.isolation = tier;
  }
  if (required !== undefined) {
    const checked = fitting<boolean>(required, { type: "boolean" }, [...path, "required"], findings);
    if (checked !== undefined) spec.required = checked;
  }
}

/**
 * Returns true if the text has the form of `integrity`: Subresource Integrity's form with SHA-256 only,
 * `sha256-` and the standard base64 of 32 bytes. That is 42 whole characters, and one whose last two bits
 * are 0.
 */
export function isIntegrity(text: string): boolean {
  return /^sha256-[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text);
}

function checkIntegrity(value: unknown, path: Path, findings: Findings): value is string {
  if (typeof value === "string" && isIntegrity(value)) return true;
  const must = typeof value !== "string"
    ? "be text"
    : !value.startsWith("sha256-")
    ? 'start with "sha256-"'
    : 'hold the standard base64 of 32 bytes after "sha256-"';
  const message = `Cannot read integrity: must ${must}: received ${describe(value)}`;
  findings.error(path, "value", message, "create it with preamp plan lock");
  return false;
}
