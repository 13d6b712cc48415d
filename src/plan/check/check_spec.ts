/** Checks one module spec of a plan: a bare id or an object. */
import type { ModuleType } from "../../sdk/contracts.ts";
import { isObject, type JsonObject } from "../../sdk/json.ts";
import type { ModuleSpec, Source } from "../../sdk/plan.ts";
import { hasSpace } from "../../text/escape.ts";
import { checkPermissions } from "./check_permissions.ts";
import { fitting } from "./field_checks.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import { describe, describeKind, formatPath, type Path } from "../../sdk/value_path.ts";
import { parseSource, SOURCE_FORMS, type SourceOptions } from "../source/source.ts";

/** Isolation tiers, weakest first. */
export const TIERS = ["inline", "worker", "process"] as const;

const KEYS: ReadonlySet<string> = new Set([
  "module",
  "source",
  "config",
  "instance_id",
  "integrity",
  "permissions",
  "isolation",
  "required",
]);
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
  if (typeof value === "string") {
    const id = checkId(value, path, findings);
    return id === undefined
      ? undefined
      : { module: id, type, source: { kind: "builtin" }, config: {}, path: place };
  }
  if (!isObject(value)) {
    findings.error(
      path,
      "type",
      `Cannot read ${place}: must be an id or an object: received ${describe(value)}`,
      SPEC_HINT,
    );
    return undefined;
  }
  const before = findings.errors.length;
  checkKeys(value, KEYS, path, findings, "warning", ALIASES);
  const spec: ModuleSpec = {
    module: checkModule(value, path, place, findings) ?? "",
    type,
    source: { kind: "builtin" },
    config: checkConfig(value, path, findings),
    path: place,
  };
  checkSource(value, spec, path, findings, options);
  checkInstance(value, spec, path, findings);
  checkProtections(value, spec, path, findings);
  return findings.errors.length === before ? spec : undefined;
}

function checkModule(fields: JsonObject, path: Path, place: string, findings: Findings): string | undefined {
  if (!Object.hasOwn(fields, "module")) {
    findings.error(path, "module_required", `Cannot read ${place}: it names no module`, SPEC_HINT);
    return undefined;
  }
  const at = [...path, "module"];
  if (typeof fields.module !== "string") {
    const message = `Cannot read module: must be text: received ${describe(fields.module)}`;
    findings.error(at, "module_type", message, SPEC_HINT);
    return undefined;
  }
  return checkId(fields.module, at, findings);
}

function checkId(id: string, at: Path, findings: Findings): string | undefined {
  if (id.trim() === "") {
    findings.error(at, "module_empty", "Cannot read module: it is empty", SPEC_HINT);
    return undefined;
  }
  if (id.length > MAX_ID || hasSpace(id)) {
    const message =
      `Cannot read module: must be an id without spaces, at most ${MAX_ID} characters: received ${
        describe(id)
      }`;
    findings.error(at, "module_invalid", message, SPEC_HINT);
    return undefined;
  }
  return id;
}

function checkConfig(fields: JsonObject, path: Path, findings: Findings): JsonObject {
  if (!Object.hasOwn(fields, "config")) return {};
  if (isObject(fields.config)) return fields.config;
  const message = `Cannot read config: must be an object: received ${describeKind(fields.config)}`;
  findings.error(
    [...path, "config"],
    "config_type",
    message,
    "leave it out, or write {}",
  );
  return {};
}

function checkSource(
  fields: JsonObject,
  spec: ModuleSpec,
  path: Path,
  findings: Findings,
  options: SourceOptions,
): void {
  if (!Object.hasOwn(fields, "source")) return;
  const at = [...path, "source"];
  const { source } = fields;
  if (typeof source !== "string" && !isObject(source)) {
    const message = `Cannot read source: must be text or an object: received ${describe(source)}`;
    findings.error(at, "source_type", message, SOURCE_FORMS);
    return;
  }
  const result = parseSource(source, options);
  if ("source" in result) {
    if (isAmplifiers(result.source, spec.module, options)) {
      const message = `Module "${spec.module}" is built in; its source is not used: received ${
        describe(result.source.original)
      }`;
      const hint = `leave source out; preamp source add ${spec.module} <url> overrides the built-in module`;
      findings.warn(at, "source_builtin", message, hint);
    } else spec.source = result.source;
  } else {
    const message = `Cannot read source: ${result.problem}`;
    findings.error(at, "source_invalid", message, result.hint);
  }
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
  if (source.kind !== "url" || !source.git || !builtins?.has(id)) return false;
  return source.git.repository.endsWith(`/amplifier-module-${id}`);
}

function checkInstance(fields: JsonObject, spec: ModuleSpec, path: Path, findings: Findings): void {
  for (const key of ["id", "instance_id"]) {
    if (!Object.hasOwn(fields, key)) continue;
    const value = fields[key];
    if (typeof value !== "string" || value === "" || value.length > MAX_ID || hasSpace(value)) {
      const message = `Cannot read ${key}: must be a name without spaces: received ${describe(value)}`;
      findings.error([...path, key], "instance_id_type", message);
    } else if (spec.instance_id !== undefined && spec.instance_id !== value) {
      const message = `Cannot read instance_id: it differs from id: received ${describe(value)}`;
      findings.error(
        [...path, key],
        "instance_id_type",
        message,
        "keep instance_id",
      );
    } else spec.instance_id = value;
  }
}

function checkProtections(fields: JsonObject, spec: ModuleSpec, path: Path, findings: Findings): void {
  if (
    Object.hasOwn(fields, "integrity") && checkIntegrity(fields.integrity, [...path, "integrity"], findings)
  ) {
    spec.integrity = fields.integrity;
  }
  if (Object.hasOwn(fields, "permissions")) {
    const permissions = checkPermissions(fields.permissions, [...path, "permissions"], findings);
    if (permissions) spec.permissions = permissions;
  }
  if (Object.hasOwn(fields, "isolation")) {
    const schema = { enum: [...TIERS] };
    const tier = fitting<typeof TIERS[number]>(fields.isolation, schema, [...path, "isolation"], findings);
    if (tier) spec.isolation = tier;
  }
  if (Object.hasOwn(fields, "required")) {
    const required = fitting<boolean>(fields.required, { type: "boolean" }, [...path, "required"], findings);
    if (required !== undefined) spec.required = required;
  }
}

/** Checks Subresource Integrity's form with SHA-256 only: `sha256-` and the standard base64 of 32 bytes. */
function checkIntegrity(value: unknown, path: Path, findings: Findings): value is string {
  const hint = "create it with preamp plan lock";
  if (typeof value !== "string") {
    findings.error(path, "type", `Cannot read integrity: must be text: received ${describe(value)}`, hint);
    return false;
  }
  if (!value.startsWith("sha256-")) {
    const received = value.length > 24 ? `"${value.slice(0, 8)}…"` : describe(value);
    findings.error(
      path,
      "value",
      `Cannot read integrity: must start with "sha256-": received ${received}`,
      hint,
    );
    return false;
  }
  // 32 bytes are 42 whole characters and one whose last two bits are 0
  if (!/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value.slice("sha256-".length))) {
    findings.error(
      path,
      "value",
      `Cannot read integrity: must hold the standard base64 of 32 bytes after "sha256-": received ${
        describe(value)
      }`,
      hint,
    );
    return false;
  }
  return true;
}
