/**
 * Compiles a plan in any form: text or data → checked plan, hash, warnings, references. Data have the same
 * limits and forbidden keys as text, and are checked on a private copy. Neither fetches nor runs a module.
 */
import { canonicalDigest } from "../sdk/digest.ts";
import { deepFreeze, isObject, type JsonObject, type JsonValue, MAX_DEPTH, toFrozen } from "../sdk/json.ts";
import type { MountPlan } from "../sdk/plan.ts";
import { RecentMap } from "../sdk/recent_map.ts";
import { describe, formatPath } from "../sdk/value_path.ts";
import { type Checked, checkPlan, type FileReference, systemFileUrl } from "./check/check.ts";
import { documentError, type Locate, toDetail, toWarning, type WarningDetail } from "./check/findings.ts";
import { type PlanEnvReference, type PlanFolders, textFor, withFolders } from "./env.ts";
import {
  DOCUMENT_LIMITS,
  type DocumentLimits,
  exceedsBytes,
  FORBIDDEN_KEYS,
} from "./parse/document_limits.ts";
import { errorMessage, PreampError } from "../sdk/errors.ts";
import { withOwnModel } from "./model_choice.ts";
import { withMode } from "./modes.ts";
import type { Finding } from "../sdk/findings.ts";

/** A text for the model in a file. */
export interface PlanText {
  /** What it is, such as `system`, `agents.reviewer.system` or `skill release`. */
  readonly label: string;
  /** URL of the file. */
  readonly url: string;
  /** SHA-256 of its bytes, lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
}

/** An accepted plan. Deeply frozen. */
export interface CompiledPlan {
  /**
   * The plan with every short form expanded, and with its folders. Other `${VAR}`s are as written.
   */
  readonly plan: MountPlan;
  /**
   * The plan as written, with its own `model` chosen: the input of `plan_hash`, and what modules read as
   * `coordinator.config`.
   */
  readonly written: JsonObject;
  /** `sha256-…` of the RFC 8785 JSON of `written`, with the texts of `system: {file}` in their places. */
  readonly plan_hash: string;
  /** The files of `system: {file}`. */
  readonly texts: readonly PlanText[];
  /** Absolute path of the folder of `instructions: project`; absent without them. */
  readonly project_folder?: string;
  readonly warnings: readonly WarningDetail[];
  /** Every `${VAR}` except expanded folders. */
  readonly env: readonly PlanEnvReference[];
}

/** Options of `compilePlan`. */
interface CompileOptions {
  /** Author of the plan (src/docs/security.md#who-is-trusted). Only an operator's plan may name files. */
  origin: "operator" | "caller";
  /** URL of the plan's file; base of relative sources and of `system: {file}`. */
  base_url?: string;
  /**
   * Reads `system: {file}`. Called for operators' plans only; without it a plan with `system: {file}` is
   * refused.
   */
  readText?: (url: string) => Promise<string>;
  /** Folders that `${PLAN_DIR}` and `${WORKSPACE}` mean. Default: they are not expanded. */
  folders?: PlanFolders;
  /** CDN of `npm:` and `jsr:` sources. */
  esm_host?: string;
  /** Ids of the built-in modules. Must be the same set for all plans of one cache. */
  builtins?: ReadonlySet<string>;
  /** Name of the plan in error messages. */
  name?: string;
  /** Limits of the document; default {@link DOCUMENT_LIMITS}. */
  limits?: DocumentLimits;
  /** Cache of compiled plans. Plans that read files are not cached. */
  cache?: PlanCache;
}

/**
 * Checks a plan and resolves to it, ready for authorisation.
 *
 * @param input YAML or JSON text, or data. Data is copied.
 * @throws {PreampError} `plan_invalid` with every finding, with line and column when `input` is text;
 * `plan_limit_exceeded`.
 */
export async function compilePlan(
  input: JsonObject | string,
  options: CompileOptions,
): Promise<CompiledPlan> {
  const { cache, limits = DOCUMENT_LIMITS } = options;
  const label = labelOf(options);
  const text = typeof input === "string" ? input : textOfData(input, label, limits);
  const key = cache && cacheKey(typeof input, text, options);
  const known = key === undefined ? undefined : cache?.get(key);
  return known ?? await compileText(text, typeof input === "string", label, key, options);
}

function labelOf({ name }: CompileOptions): string {
  return name === undefined ? "the plan" : `the plan "${name}"`;
}

/** A plan with what is said about its form. */
interface CheckedPlan extends Checked {
  /** As in {@link CompiledPlan}. */
  readonly written: JsonObject;
  /** Returns the place of a path; absent for data. */
  readonly locate: Locate | undefined;
}

/**
 * Reads a plan and checks its form, also of one that is not accepted.
 *
 * @throws {PreampError} `plan_invalid` for a text that cannot be read; `plan_limit_exceeded`.
 */
export async function readPlan(input: JsonObject | string, options: CompileOptions): Promise<CheckedPlan> {
  const label = labelOf(options);
  const { limits = DOCUMENT_LIMITS } = options;
  const text = typeof input === "string" ? input : textOfData(input, label, limits);
  return await readForm(text, typeof input === "string", label, options);
}

async function readForm(
  text: string,
  is_document: boolean,
  label: string,
  options: CompileOptions,
): Promise<CheckedPlan> {
  const { origin, base_url, readText, limits = DOCUMENT_LIMITS } = options;
  const { data, locate } = is_document
    ? await (await import("./parse/parse.ts")).parseDocument(text, {
      label,
      limits,
      hint: "start with session:",
    })
    : { data: JSON.parse(text), locate: undefined };
  if (!is_document) checkData(data, label, limits);
  // marked, so that stores do not measure the plan of each run; deeper data than can be marked would be cut
  const chosen = chooseModel(data, label, options, locate);
  const written = limits.max_depth <= MAX_DEPTH ? toFrozen(chosen) as JsonObject : deepFreeze(chosen);
  const reads_files = origin === "operator" && readText !== undefined && base_url !== undefined;
  return { ...checkPlan(written, { ...options, files: reads_files }), written, locate };
}

async function compileText(
  text: string,
  is_document: boolean,
  label: string,
  key: string | undefined,
  options: CompileOptions,
): Promise<CompiledPlan> {
  const { base_url, folders = {}, cache } = options;
  const { plan, findings, env, names_folders, files, written, locate } = await readForm(
    text,
    is_document,
    label,
    options,
  );
  if (!plan) {
    throw documentError("plan_invalid", label, findings.errors.map((finding) => toDetail(finding, locate)));
  }
  const texts = await Promise.all(files.map((file) => readFile(file, label, options, locate)));
  const { system } = plan;
  const inline = system === undefined ? plan : { ...plan, system: textFor(system, folders) };
  const expanded = names_folders ? withFolders(inline, folders) : inline;
  const compiled = deepFreeze({
    plan: withMode(withTexts(expanded, files, texts)),
    written,
    plan_hash: await canonicalDigest(withTexts(written, files, texts)),
    texts: await Promise.all(files.map((file, index) => planText(file, texts[index]!, base_url))),
    ...(plan.instructions && folders.WORKSPACE ? { project_folder: folders.WORKSPACE } : {}),
    warnings: findings.warnings.map((finding) => toWarning(finding, locate)),
    env,
  });
  if (key !== undefined && files.length === 0) cache?.set(key, compiled);
  return compiled;
}

/** Returns the plan with its own `model` chosen. @throws {PreampError} `plan_invalid`. */
function chooseModel(
  data: JsonObject,
  label: string,
  { builtins = new Set() }: CompileOptions,
  locate: Locate | undefined,
): JsonObject {
  if (!isObject(data)) return data; // the check reports it
  try {
    return withOwnModel(data, builtins);
  } catch (error) {
    const [{ message, hint } = { message: errorMessage(error) }] = (error as PreampError).details;
    const finding = { path: ["model"], message, ...(hint === undefined ? {} : { hint }) };
    throw documentError("plan_invalid", label, [toDetail(finding, locate)]);
  }
}

/** Returns a key of everything that the result depends on. */
function cacheKey(form: string, text: string, options: CompileOptions): string {
  const { origin, base_url = "", folders = null, esm_host = "", readText, limits = null } = options;
  return JSON.stringify([form, origin, base_url, folders, esm_host, readText !== undefined, limits]) + text;
}

async function readFile(
  { owner, file }: FileReference,
  label: string,
  { readText, base_url, limits = DOCUMENT_LIMITS }: CompileOptions,
  locate: Locate | undefined,
): Promise<string> {
  let cause: unknown;
  let fact = "it cannot be read";
  try {
    const text = await readText!(systemFileUrl(file, base_url)); // without it, the check has refused the file
    if (!exceedsBytes(text, limits.max_bytes)) return text;
    fact = `it has more than ${limits.max_bytes} bytes`;
  } catch (error) {
    cause = error;
  }
  const path = [...owner, "system", "file"];
  const message = `Cannot read system.file: ${fact}: received ${describe(file)}`;
  const detail = toDetail({ path, message, hint: "name a text file beside the plan" }, locate);
  throw documentError("plan_invalid", label, [detail], cause);
}

async function planText(
  { owner, file }: FileReference,
  text: string,
  base_url: string | undefined,
): Promise<PlanText> {
  const bytes = new TextEncoder().encode(text);
  const sha256 = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  const label = formatPath([...owner, "system"]);
  return { label, url: systemFileUrl(file, base_url), sha256, bytes: bytes.length };
}

/** Returns a plan, checked or as written, with the text of each `system: {file}`. */
function withTexts<Plan extends MountPlan | JsonObject>(
  checked: Plan,
  files: readonly FileReference[],
  texts: readonly string[],
): Plan {
  if (files.length === 0) return checked;
  const agents = isObject(checked.agents) ? { ...checked.agents } : {};
  const plan = { ...checked, agents };
  for (const [index, { owner: [, agent] }] of files.entries()) {
    const system = texts[index]!; // of the same index
    if (agent === undefined) plan.system = system;
    else {
      const overlay = agents[agent];
      agents[agent] = { ...isObject(overlay) ? overlay : {}, system };
    }
  }
  return plan;
}

/**
 * Compiled plans by everything that the result depends on, because clients post the same plan many times.
 * Limited to 256 plans and to 4 Mi characters of their texts.
 */
export type PlanCache = RecentMap<CompiledPlan>;

/** Returns an empty cache. */
export function createPlanCache(): PlanCache {
  return new RecentMap({ max_entries: 256, max_size: 4 * 1024 * 1024, sizeOf: (_plan, key) => key.length });
}

/**
 * Returns the JSON text of data. Leaves out values that JSON cannot represent, as `JSON.stringify` does.
 *
 * @throws {PreampError} `plan_limit_exceeded` for more than `max_bytes` or extreme depth, `plan_invalid`
 * for a cycle or no data.
 */
function textOfData(value: unknown, label: string, { max_bytes }: DocumentLimits): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) {
      throw tooMuch(label, "lists and objects are nested too deeply", "", error);
    }
    const message = `Cannot accept ${label}: it is not JSON data`;
    throw new PreampError("plan_invalid", message, { cause: error });
  }
  if (text === undefined) throw new PreampError("plan_invalid", `Cannot accept ${label}: there is no data`);
  if (exceedsBytes(text, max_bytes)) {
    throw tooMuch(label, `it has more than ${max_bytes} bytes as JSON`, "");
  }
  return text;
}

/**
 * Checks JSON data for limits, forbidden keys and malformed text.
 *
 * @throws {PreampError} `plan_limit_exceeded` at the first limit, `plan_invalid` with all findings.
 */
function checkData(data: JsonValue, label: string, { max_nodes, max_depth }: DocumentLimits): void {
  const findings: Omit<Finding, "code">[] = [];
  const path: (string | number)[] = [];
  let nodes = 0;

  function visit(value: JsonValue, depth: number): void {
    if (++nodes > max_nodes) throw tooMuch(label, `more than ${max_nodes} values`, formatPath(path));
    if (typeof value === "string") {
      if (!value.isWellFormed()) {
        note("Cannot read text: it contains half of a surrogate pair", "write the whole character");
      }
      return;
    }
    if (typeof value !== "object" || value === null) return;
    if (depth >= max_depth) {
      throw tooMuch(label, `more than ${max_depth} levels of nested lists and objects`, formatPath(path));
    }
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) descend(index, value[index]!, depth);
      return;
    }
    for (const key of Object.keys(value)) {
      if (!FORBIDDEN_KEYS.has(key) && key.isWellFormed()) descend(key, value[key]!, depth);
      else {
        path.push(key.toWellFormed());
        note("Cannot read this key: it is not allowed in any object", "rename the key");
        path.pop();
      }
    }
  }

  function descend(step: string | number, value: JsonValue, depth: number): void {
    path.push(step);
    visit(value, depth + 1);
    path.pop();
  }

  function note(message: string, hint: string): void {
    findings.push({ path: [...path], message, hint });
  }

  visit(data, 0);
  if (findings.length > 0) {
    throw documentError(
      "plan_invalid",
      label,
      findings.map((finding) => toDetail(finding)),
    );
  }
}

function tooMuch(label: string, fact: string, path: string, cause?: unknown): PreampError {
  return documentError(
    "plan_limit_exceeded",
    label,
    [{ path, message: `Cannot read further: ${fact}` }],
    cause,
  );
}
