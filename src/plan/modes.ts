/**
 * Modes of a plan: gates that can be put before every tool call, and a text for the model. A mode is rules of
 * `hooks-approval` beside those of the plan, and the strictest decision counts, so that a mode only narrows
 * (src/docs/plan.md#modes). Pure.
 */
import { checkKeys, type Findings } from "../sdk/findings.ts";
import { documentError } from "./check/findings.ts";
import { object, text } from "./check/field_checks.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject, type JsonSchema } from "../sdk/json.ts";
import type { Mode, ModuleSpec, MountPlan } from "../sdk/plan.ts";
import { describe } from "../sdk/value_path.ts";

/** Name that means no mode. */
export const NO_MODE = "none";

const ACTIONS: readonly unknown[] = ["allow", "ask", "deny"];

/** Schemas of the keys of a mode, for editors. */
export const MODE_PROPERTIES: Readonly<Record<string, JsonSchema>> = {
  description: { type: "string", description: "One line about the mode" },
  instruction: { type: "string", description: "Text for the model while the mode is on" },
  rules: { type: "array", description: "Rules of hooks-approval; the first that matches a call decides" },
  default: { enum: ACTIONS, default: "deny", description: "Decision about calls that no rule matches" },
};

const KEYS: ReadonlySet<string> = new Set(Object.keys(MODE_PROPERTIES));
const NAME = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/i;

/** Checks `modes`. Returns those without errors. */
export function checkModes(value: unknown, findings: Findings): Record<string, Mode> {
  const modes: Record<string, Mode> = Object.create(null);
  const hint = "write modes: {name: {description, instruction, rules, default}}";
  for (const [name, written] of Object.entries(object(value, ["modes"], findings, hint) ?? {})) {
    const path = ["modes", name];
    if (name === NO_MODE || !NAME.test(name)) {
      const message = `Cannot use mode ${
        describe(name)
      }: a name has letters, digits, "-" and "_", and "none" means no mode`;
      findings.error(path, "value", message, "choose another name");
    }
    const fields = object(written, path, findings, hint);
    if (!fields) continue;
    checkKeys(fields, KEYS, path, findings, "error");
    for (const key of ["description", "instruction"] as const) {
      if (fields[key] !== undefined) text(fields[key], [...path, key], findings);
    }
    const { default: otherwise = "deny", rules = [] } = fields;
    if (!ACTIONS.includes(otherwise)) {
      const message = `Cannot read default: must be allow, ask or deny: received ${describe(otherwise)}`;
      findings.error([...path, "default"], "value", message);
    }
    for (const [index, rule] of (Array.isArray(rules) ? rules : [null]).entries()) {
      if (isObject(rule) && typeof rule.tool === "string" && ACTIONS.includes(rule.action)) continue;
      const place = Array.isArray(rules) ? [...path, "rules", index] : [...path, "rules"];
      const message = `Cannot read rules: each must have a tool, and an action allow, ask or deny: received ${
        describe(Array.isArray(rules) ? rule : rules)
      }`;
      findings.error(place, "value", message, "write rules of hooks-approval: {tool: bash, action: deny}");
    }
    modes[name] = { ...fields, rules, default: otherwise } as unknown as Mode; // the checks above
  }
  return modes;
}

/** Checks `mode`, and returns it; undefined for no mode. */
export function checkMode(
  value: unknown,
  modes: Readonly<Record<string, Mode>>,
  findings: Findings,
): string | undefined {
  if (value === undefined || value === NO_MODE) return undefined;
  const names = Object.keys(modes);
  if (typeof value === "string" && names.includes(value)) return value;
  findings.error(["mode"], "value", unknownMode(value, names), "name one of the plan's modes");
  return undefined;
}

function unknownMode(mode: unknown, names: readonly string[]): string {
  const known = names.length === 0
    ? "the plan has no modes"
    : `the modes are ${[...names, NO_MODE].join(", ")}`;
  return `Cannot use mode ${describe(mode)}: ${known}`;
}

/** Returns a plan as written in another mode. @throws {PreampError} `request_invalid` for an unknown one. */
export function inMode(written: JsonObject, mode: string): JsonObject {
  const names = isObject(written.modes) ? Object.keys(written.modes) : [];
  if (mode !== NO_MODE && !names.includes(mode)) {
    const message = unknownMode(mode, names);
    throw documentError("request_invalid", "the request", [{ path: "mode", message }]);
  }
  return { ...written, mode };
}

/** Returns the error for a caller that chooses the mode of an operator's plan. */
export function modeRefused(label: string): PreampError {
  return new PreampError(
    "policy_refused",
    `Cannot use "mode" with ${label}: only the operator chooses the mode of a plan on the server: leave "mode" out, or send a plan of your own`,
  );
}

/** Returns a checked plan with the gate and the text of its mode. */
export function withMode(plan: MountPlan): MountPlan {
  const { mode: name, modes = {} } = plan;
  const mode = name === undefined ? undefined : modes[name];
  if (!mode) return plan;
  const { instruction, rules, default: otherwise } = mode;
  const asks = otherwise === "ask";
  const gate: ModuleSpec = {
    module: "hooks-approval",
    type: "hook",
    source: { kind: "builtin" },
    instance_id: `mode-${name}`,
    config: {
      label: `the mode ${name}`,
      preset: asks ? "ask-all" : "read-only",
      rules: [...rules, ...asks ? [] : [{ tool: "*", action: otherwise }]],
    },
    required: true,
    path: `modes.${name}`,
  };
  const texts = [
    plan.system?.trimEnd(),
    instruction && `<mode name="${name}">\n${instruction.trim()}\n</mode>`,
  ];
  const system = texts.filter((text) => text).join("\n\n");
  return { ...plan, hooks: [...plan.hooks, gate], ...(system === "" ? {} : { system }) };
}

/** A mode for a reviewer. */
export interface ExplainedMode {
  name: string;
  description: string | null;
  /** Whether it is the mode of the plan. */
  active: boolean;
  /** What it does with calls, in order: `allows read, glob; denies everything else`. */
  decides: string;
}

const VERBS = { allow: "allows", ask: "asks about", deny: "denies" } as const;

/** Returns the modes of a plan for a reviewer. */
export function explainModes({ mode, modes = {} }: Pick<MountPlan, "mode" | "modes">): ExplainedMode[] {
  return Object.entries(modes).map(([name, { description = null, rules, default: otherwise }]) => {
    const parts: { action: Mode["default"]; calls: string[] }[] = [];
    for (const rule of rules) {
      const last = parts.at(-1);
      if (last?.action === rule.action) last.calls.push(callsOf(rule));
      else parts.push({ action: rule.action, calls: [callsOf(rule)] });
    }
    const others = rules.length === 0 ? "every call" : "every other call";
    const decides = [
      ...parts.map(({ action, calls }) => `${VERBS[action]} ${calls.join(", ")}`),
      `${VERBS[otherwise]} ${others}`,
    ].join("; ");
    return { name, description, active: name === mode, decides };
  });
}

function callsOf({ tool, argv, input }: Mode["rules"][number]): string {
  const words = Array.isArray(argv) ? argv.map(String) : [];
  const fields = isObject(input) ? Object.entries(input).map(([field, glob]) => `${field}=${glob}`) : [];
  return [tool, ...words, ...fields].join(" ");
}
