/**
 * Checks the `session` section with its orchestrator and context, and the top-level blocks that belong to
 * them.
 */
import { isObject, type JsonObject, type JsonSchema } from "../../sdk/json.ts";
import type { ModuleSpec, MountPlan } from "../../sdk/plan.ts";
import { checkSpec, configIn } from "./check_spec.ts";
import { fitting, object } from "./field_checks.ts";
import { checkKeys, type Findings } from "../../sdk/findings.ts";
import type { Path } from "../../sdk/value_path.ts";
import type { SourceOptions } from "../source/source.ts";

type Session = MountPlan["session"];
type Slot = "orchestrator" | "context";

const INJECTION_LIMIT: JsonSchema = { type: ["integer", "null"], minimum: 0 };

/** Schemas of the keys of `session` besides the two modules. */
export const SESSION_SETTINGS: Readonly<Record<Exclude<keyof Session, Slot>, JsonSchema>> = {
  injection_budget_per_turn: { ...INJECTION_LIMIT, description: "Tokens that hooks may inject in a turn" },
  injection_size_limit: {
    ...INJECTION_LIMIT,
    description: "Characters of one injection; a larger one is refused",
  },
  injection_budget_mode: {
    enum: ["warn", "drop", "error"],
    default: "warn",
    description: "What happens above the budget of injections: nothing else, left out, refused",
  },
  raw: { type: "boolean", default: false, description: "Adds the redacted plan to session:start" },
  hooks_first: { type: "boolean", default: false, description: "Mounts hooks before providers and tools" },
  metadata: { type: "object", description: "Echoed in session:start and session:fork" },
};

const SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    ...{ orchestrator: {}, orchestrator_source: {}, context: {}, context_source: {} },
    ...SESSION_SETTINGS,
  },
  additionalProperties: false,
};

/** A session of which keys may be missing, as in an overlay. */
export type PartialSession = Partial<Session>;

/**
 * Returns the session of a plan, or of an overlay, where orchestrator and context are optional.
 *
 * @param plan The object with `session`, `orchestrator` and `context`.
 * @param path Path of that object.
 */
export function checkSession(
  plan: JsonObject,
  path: Path,
  findings: Findings,
  options: SourceOptions & { overlay: boolean },
): PartialSession {
  const at = [...path, "session"];
  const hint = "write session: {orchestrator: loop-streaming, context: context-simple}";
  const fields = plan.session === undefined ? undefined : object(plan.session, at, findings, hint);
  if (fields) fitting(fields, SCHEMA, at, findings);
  const session: PartialSession = {};
  for (const slot of ["orchestrator", "context"] as const) {
    const config = checkSlotConfig(plan, slot, path, findings);
    if (fields?.[slot] !== undefined) {
      const spec = checkSlot(fields, slot, config, at, findings, options);
      if (spec) session[slot] = spec;
    } else if (fields && !options.overlay) {
      const message = `Configuration must specify session.${slot}`;
      findings.error(at, `${slot}_present`, message, `add ${slot}: ${DEFAULTS[slot]}`);
    }
  }
  const settings = Object.entries(fields ?? {}).filter(([key]) => Object.hasOwn(SESSION_SETTINGS, key));
  return Object.assign(session, Object.fromEntries(settings));
}

const DEFAULTS: Readonly<Record<Slot, string>> = {
  orchestrator: "loop-streaming",
  context: "context-simple",
};

/**
 * Checks the orchestrator or context. The string form has its source and config in keys beside it; the
 * object form contains them.
 */
function checkSlot(
  fields: JsonObject,
  slot: Slot,
  config: JsonObject | undefined,
  at: Path,
  findings: Findings,
  options: SourceOptions,
): ModuleSpec | undefined {
  const module = fields[slot];
  if (typeof module === "string") {
    const source = fields[`${slot}_source`];
    const value = source === undefined ? module : { module, source };
    const spec = checkSpec(value, slot, [...at, slot], findings, options);
    if (spec && config) spec.config = config;
    return spec;
  }
  if (isObject(module)) warnIgnored(fields, slot, config, at, findings);
  return checkSpec(module, slot, [...at, slot], findings, options);
}

function warnIgnored(
  fields: JsonObject,
  slot: Slot,
  config: JsonObject | undefined,
  at: Path,
  findings: Findings,
): void {
  if (config && Object.keys(config).length > 0) {
    const message =
      `Cannot use ${slot}.config: session.${slot} is an object and has its own config; it is ignored`;
    const path = [...at.slice(0, -1), slot, "config"];
    findings.warn(path, "ignored", message, `move it to session.${slot}.config`);
  }
  if (fields[`${slot}_source`] !== undefined) {
    const message =
      `Cannot use ${slot}_source: session.${slot} is an object and has its own source; it is ignored`;
    findings.warn([...at, `${slot}_source`], "ignored", message, `move it to session.${slot}.source`);
  }
}

/** Returns the config of a top-level `orchestrator:` or `context:` block. */
function checkSlotConfig(
  plan: JsonObject,
  slot: Slot,
  path: Path,
  findings: Findings,
): JsonObject | undefined {
  if (plan[slot] === undefined) return undefined;
  const at = [...path, slot];
  const hint = `name the module in session.${slot}; write ${slot}: {config: {…}} here`;
  const block = object(plan[slot], at, findings, hint);
  if (!block) return undefined;
  checkKeys(block, new Set(["config"]), at, findings, "warning");
  return configIn(block, at, findings, "type");
}
