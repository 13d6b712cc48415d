/** Checks a module's config in a plan against the module's `config_schema`, with regard to `${VAR}` references. */
import { checkConfig } from "../../sdk/config.ts";
import type { Findings } from "../../sdk/findings.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { lastStep, type Path } from "../../sdk/value_path.ts";
import { findEnv } from "../env.ts";

/**
 * Reports what is wrong with a config as written. Values with a `${VAR}` pass, because their type is known
 * after expansion.
 *
 * @param path Place of the config in the plan.
 */
export function checkWrittenConfig(
  config: JsonObject,
  schema: JsonObject,
  path: Path,
  findings: Findings,
): void {
  const unknown = (value: unknown) => typeof value === "string" && findVariables(value).length > 0;
  checkConfig(config, schema, { findings, path, name: lastStep, unknown });
}

/**
 * Reports what is wrong with an expanded and typed config (typed_env.ts). Messages name the variables of a
 * value, never the value.
 *
 * @param path Place of the config in the plan.
 * @param written The config before its variables were expanded.
 */
export function checkExpandedConfig(
  config: JsonObject,
  schema: JsonObject,
  path: Path,
  findings: Findings,
  written: JsonObject,
): void {
  const variables = (place: Path) => {
    let value: unknown = written;
    for (const step of place.slice(path.length)) value = (value as Record<string | number, unknown>)?.[step];
    return typeof value === "string" ? findVariables(value) : [];
  };
  checkConfig(config, schema, { findings, path, name: lastStep, variables });
}

function findVariables(text: string): string[] {
  return text.includes("${") ? [...new Set(findEnv(text).map(({ name }) => name))] : [];
}
