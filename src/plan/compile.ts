/**
 * Compiles a plan in any form: text or data → checked plan, hash, warnings, references. Neither fetches nor
 * runs a module.
 */
import type { PlanCache } from "./cache.ts";
import { checkPlan } from "./check/check.ts";
import { type FileReference, systemFileUrl } from "./check/check_system.ts";
import { documentError, type Locate, toDetail, toWarning, type WarningDetail } from "./check/findings.ts";
import type { PlanEnvReference } from "./env.ts";
import { DOCUMENT_LIMITS, type DocumentLimits, exceedsBytes } from "./parse/document_limits.ts";
import { checkData, textOfData } from "./parse/plan_from_data.ts";
import { describe } from "../sdk/value_path.ts";
import { canonicalDigest } from "../sdk/digest.ts";
import { deepFreeze, isObject, type JsonObject } from "../sdk/json.ts";
import type { MountPlan } from "../sdk/plan.ts";

/** An accepted plan. Deeply frozen. */
export interface CompiledPlan {
  /** The plan with every short form expanded. `${VAR}`s are as written. */
  readonly plan: MountPlan;
  /** The plan as written: the input of `plan_hash`, and what modules read as `coordinator.config`. */
  readonly written: JsonObject;
  /** `sha256-…` of the RFC 8785 JSON of `written`. */
  readonly plan_hash: string;
  readonly warnings: readonly WarningDetail[];
  /** Every `${VAR}` outside of text that only models and people read. */
  readonly env: readonly PlanEnvReference[];
}

/** Options of `compilePlan`. */
export interface CompileOptions {
  /** Author of the plan (src/docs/security.md#who-is-trusted). Only an operator's plan may name files. */
  origin: "operator" | "caller";
  /** URL of the plan's file; base of relative sources and of `system: {file}`. */
  base_url?: string;
  /**
   * Reads `system: {file}`. Called for operators' plans only; without it a plan with `system: {file}` is
   * refused.
   */
  readText?: (url: string) => Promise<string>;
  /** CDN of `npm:` and `jsr:` sources. */
  esm_host?: string;
  /** Ids of the built-in modules. Must be the same set for all plans of one cache. */
  builtins?: ReadonlySet<string>;
  /** Name of the plan in error messages. */
  name?: string;
  /** Limits of the document; default {@link DOCUMENT_LIMITS}. */
  limits?: DocumentLimits;
  /** Cache of compiled plans. Plans that read files are not cached. */
  cache?: PlanCache<CompiledPlan>;
}

/**
 * Checks a plan and returns it ready for authorisation.
 *
 * @param input YAML or JSON text, or data. Data is copied.
 * @throws {PreampError} `plan_invalid` with every finding, with line and column when `input` is text;
 * `plan_limit_exceeded`.
 */
export async function compilePlan(
  input: JsonObject | string,
  options: CompileOptions,
): Promise<CompiledPlan> {
  const label = options.name === undefined ? "the plan" : `the plan "${options.name}"`;
  const limits = options.limits ?? DOCUMENT_LIMITS;
  const text = typeof input === "string" ? input : textOfData(input, label, limits);
  const key = options.cache && cacheKey(typeof input, text, options);
  const known = key === undefined ? undefined : options.cache?.get(key);
  if (known) return known;
  const { data, locate } = typeof input === "string"
    ? await (await import("./parse/parse.ts")).parseDocument(text, { label, limits })
    : { data: dataOf(text, label, limits), locate: undefined };
  const { checked, files } = checkedPlan(data, label, options, locate);
  const compiled = { ...checked, plan_hash: await canonicalDigest(data) };
  if (files.length > 0) return deepFreeze(await withFiles(compiled, files, label, options, locate));
  if (key !== undefined) options.cache?.set(key, deepFreeze(compiled));
  return deepFreeze(compiled);
}

/** Returns a key of everything that the result depends on. */
function cacheKey(form: string, text: string, options: CompileOptions): string {
  const { origin, base_url = "", esm_host = "", readText, limits = null } = options;
  return JSON.stringify([form, origin, base_url, esm_host, readText !== undefined, limits]) + text;
}

function dataOf(text: string, label: string, limits: DocumentLimits): JsonObject {
  const data = JSON.parse(text);
  checkData(data, label, limits);
  return data;
}

function checkedPlan(
  written: JsonObject,
  label: string,
  options: CompileOptions,
  locate: Locate | undefined,
): { checked: Omit<CompiledPlan, "plan_hash">; files: FileReference[] } {
  const { plan, findings, env, files } = checkPlan(written, {
    origin: options.origin,
    files: options.origin === "operator" && options.readText !== undefined && options.base_url !== undefined,
    ...(options.base_url === undefined ? {} : { base_url: options.base_url }),
    ...(options.esm_host === undefined ? {} : { esm_host: options.esm_host }),
    ...(options.builtins === undefined ? {} : { builtins: options.builtins }),
  });
  if (!plan) {
    throw documentError("plan_invalid", label, findings.errors.map((finding) => toDetail(finding, locate)));
  }
  const warnings = findings.warnings.map((finding) => toWarning(finding, locate));
  return { checked: { plan, written, warnings, env }, files };
}

/** Puts the text of each `system: {file}` into the checked plan. `written` and `plan_hash` do not change. */
async function withFiles(
  compiled: CompiledPlan,
  files: readonly FileReference[],
  label: string,
  options: CompileOptions,
  locate: Locate | undefined,
): Promise<CompiledPlan> {
  const read = await Promise.all(files.map((file) => readFile(file, label, options, locate)));
  const plan: MountPlan = { ...compiled.plan, agents: { ...compiled.plan.agents } };
  for (const [index, { owner }] of files.entries()) {
    const text = read[index]!;
    const agent = owner[1];
    if (agent === undefined) plan.system = text;
    else {
      const overlay = plan.agents[agent];
      plan.agents[agent] = { ...isObject(overlay) ? overlay : {}, system: text };
    }
  }
  return { ...compiled, plan };
}

async function readFile(
  { owner, file }: FileReference,
  label: string,
  options: CompileOptions,
  locate: Locate | undefined,
): Promise<string> {
  const path = [...owner, "system", "file"];
  let cause: unknown;
  let fact = "it cannot be read";
  try {
    const text = await options.readText?.(systemFileUrl(file, options.base_url));
    const { max_bytes } = options.limits ?? DOCUMENT_LIMITS;
    if (text !== undefined && !exceedsBytes(text, max_bytes)) return text;
    if (text !== undefined) fact = `it has more than ${max_bytes} bytes`;
  } catch (error) {
    cause = error;
  }
  const message = `Cannot read system.file: ${fact}: received ${describe(file)}`;
  throw documentError("plan_invalid", label, [
    toDetail({ path, message, hint: "name a text file beside the plan" }, locate),
  ], cause);
}
