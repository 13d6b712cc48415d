/**
 * Lists the settings by dotted name, and converts flags and variables to policy data: each setting is also
 * `--limits.max_cost_usd 1` and `PREAMP_LIMITS_MAX_COST_USD`. Pure: the caller reads the command line and
 * the environment.
 */
import type { JsonObject } from "../sdk/json.ts";
import type { Rule, Rules } from "./rules.ts";
import { SECTIONS, SINGLES } from "./policy_schema.ts";

/** One setting of `preamp.yaml`. */
export interface Setting extends Pick<Rule, "default" | "meaning" | "range" | "unit" | "for_keys"> {
  /** Dotted name, also the name of its flag: `limits.max_cost_usd`. */
  readonly path: string;
  readonly form: Rule["form"];
}

/** A setting that a flag or a variable can set. */
export interface OutsideSetting extends Setting {
  /** Form of its text. Lists are comma-separated. */
  readonly form: Exclude<Rule["form"], "data">;
  /** Name of the environment variable. */
  readonly variable: string;
}

const ALL: readonly Setting[] = [
  ...settingsOf("", SINGLES),
  ...Object.entries<Rules>(SECTIONS).flatMap(([section, rules]) => settingsOf(`${section}.`, rules)),
];

const OUTSIDE: readonly OutsideSetting[] = ALL.flatMap((setting) => {
  const { form, path } = setting;
  return form === "data"
    ? []
    : [{ ...setting, form, variable: `PREAMP_${path.replaceAll(".", "_").toUpperCase()}` }];
});

function settingsOf(prefix: string, rules: Rules): Setting[] {
  return Object.entries(rules).map(([key, { read: _, ...facts }]) => ({ path: `${prefix}${key}`, ...facts }));
}

/** Returns every setting but `policies`, in the order of the table. */
export function allSettings(): readonly Setting[] {
  return ALL;
}

/** Returns every setting that a flag or a variable can set. The others need a document. */
export function policySettings(): readonly OutsideSetting[] {
  return OUTSIDE;
}

/** Returns the valid values of a setting for display: `bytes, a whole number, at least 1`. */
export function valuesOf({ unit, range }: Setting): string {
  return unit === undefined ? range : `${unit}, ${range}`;
}

/**
 * Returns settings as policy data, to merge over a document with `mergePlans` and to read with
 * `policyFromData`. Text of the wrong form is kept, so that the check reports it.
 */
export function settingsToData(textOf: (setting: OutsideSetting) => string | undefined): JsonObject {
  const data: { [section: string]: JsonObject | unknown } = {};
  for (const setting of policySettings()) {
    const text = textOf(setting);
    if (text === undefined) continue;
    const [section = "", key] = setting.path.split(".");
    const value = valueOf(text, setting.form);
    if (key === undefined) data[section] = value;
    else data[section] = { ...data[section] as JsonObject | undefined, [key]: value };
  }
  return data;
}

function valueOf(text: string, form: OutsideSetting["form"]): unknown {
  if (form === "list") return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
  if (form === "boolean") {
    return text === "true" || text === "1" ? true : text === "false" || text === "0" ? false : text;
  }
  return form === "number" && text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
