/**
 * Flags and variables as policy data: every key of `preamp.yaml` is also `--limits.max_cost_usd 1` and
 * `PREAMP_LIMITS_MAX_COST_USD` (trust.md). Pure: whoever calls reads the command line and the environment.
 */
import type { JsonObject } from "../sdk/json.ts";
import { SECTIONS, SINGLES } from "./shape.ts";

/** One key that may be set from outside. */
export interface Setting {
  /** Dotted path, the flag's name: `limits.max_cost_usd`. */
  path: string;
  /** Name of the environment variable. */
  variable: string;
  /** How its text is read: lists are comma-separated. */
  form: "text" | "number" | "boolean" | "list";
}

const ALL = listSettings();

/** Returns every key that a flag or a variable may set. `auth.keys`, `policies` and `permissions.max` need a document. */
export function policySettings(): readonly Setting[] {
  return ALL;
}

function listSettings(): Setting[] {
  const settings: Setting[] = [];
  const add = (path: string, form: string) => {
    if (form === "text" || form === "number" || form === "boolean" || form === "list") {
      settings.push({ path, form, variable: `PREAMP_${path.replaceAll(".", "_").toUpperCase()}` });
    }
  };
  for (const [key, rule] of Object.entries(SINGLES)) add(key, rule.form);
  for (const [section, rules] of Object.entries(SECTIONS)) {
    for (const [key, rule] of Object.entries(rules)) add(`${section}.${key}`, rule.form);
  }
  return settings;
}

/**
 * Returns settings as policy data, to be laid over a document with `mergePlans` and read by `policyFromData`. Text that is
 * not of the setting's form is kept as text, so that the check names it.
 */
export function settingsToData(given: (setting: Setting) => string | undefined): JsonObject {
  const data: { [section: string]: JsonObject | unknown } = {};
  for (const setting of policySettings()) {
    const text = given(setting);
    if (text === undefined) continue;
    const [section = "", key] = setting.path.split(".");
    const value = valueOf(text, setting.form);
    if (key === undefined) data[section] = value;
    else data[section] = { ...data[section] as JsonObject | undefined, [key]: value };
  }
  return data;
}

function valueOf(text: string, form: Setting["form"]): unknown {
  if (form === "list") return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
  if (form === "boolean") {
    return text === "true" || text === "1" ? true : text === "false" || text === "0" ? false : text;
  }
  return form === "number" && text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
