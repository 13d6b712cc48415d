/** Converts the arguments of `preamp run` to a run request. */
import { checkLimits, LIMIT_NAMES } from "../plan/check/field_checks.ts";
import { Findings } from "../sdk/findings.ts";
import type { RunRequest } from "../runs/types.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { RunLimits } from "../sdk/contracts.ts";
import { adviceFor, type Arguments, type Flag, UsageError } from "./arguments.ts";
import { readInput } from "../settings/paths.ts";
import type { Io } from "./terminal/io.ts";
import { attachedFiles, fenced, filesText } from "./prompt_files.ts";
import { messageText } from "./terminal/progress_lines.ts";
import { modelOf, readNamedPlan, readPlans } from "./plan_files.ts";
import type { Settings } from "./settings.ts";

/** A run request with the place of its plan. */
export interface LocalRunRequest {
  request: RunRequest;
  /** Base URL of the plan's relative paths; absent if no file was named. */
  base_url?: string;
  /** Name of the plan in messages. */
  plan_name: string;
}

/**
 * Reads plans, limits and prompt. @throws {UsageError} for invalid arguments. @throws {DocumentFailure} for
 * an invalid file.
 */
export async function readRequest(args: Arguments, io: Io, settings: Settings): Promise<LocalRunRequest> {
  const files = args.all("plan");
  const limits = readLimits(args.all("limit"));
  const named = await readNamedPlan(args, io, settings);
  const plan = named || files.length > 0 ? await readPlans(files, io, named) : undefined;
  const text = await readPrompt(args, io, settings.policy.limits.max_body_bytes);
  const attached = await attachedFiles(args.rest[0] ?? "", {
    folder: io.cwd,
    names_texts: false, // of a script, the prompt may be anyone's
    files: args.all("file"),
    images: args.all("image"),
  });
  if (attached.length > 0) io.err.write(`With ${messageText(filesText(attached))}\n`);
  const prompt = attached.length === 0
    ? text
    : [{ type: "text", text } as const, ...attached.map(({ block }) => block)];
  if (plan && files.length > 0) {
    const { sayPlanOnce } = await import("./folder/said_plans.ts");
    await sayPlanOnce(plan, io, { workspace: settings.workspace ?? io.cwd, env: settings.env });
  }
  const request: RunRequest = {
    prompt,
    ...(plan ? { plan: plan.plan } : {}),
    ...modelOf(args),
    ...args.has("mode") ? { mode: args.value("mode")! } : {},
    ...(limits ? { limits } : {}),
  };
  return { request, plan_name: plan?.name ?? "plan", ...(plan ? { base_url: plan.base_url } : {}) };
}

/** What stdin is for, unless a plan is read from it. */
export const STDIN_FLAG: Flag = {
  name: "stdin",
  choices: ["read", "ignore"],
  help: "whether text that is piped in belongs to the prompt (default: read)",
};

/** Milliseconds after which the program says what it waits for. */
const SILENT_MS = 2_000;

async function readPrompt(args: Arguments, io: Io, max_bytes: number): Promise<string> {
  const words = args.rest;
  const holds_plan = args.all("plan").includes("-");
  const ignores = args.value("stdin") === "ignore";
  if (words.length > 1) {
    const received = words.map((word) => JSON.stringify(word.slice(0, 40))).join(" ");
    throw new UsageError(
      `Cannot take ${words.length} prompts; put the prompt in quotes. Received: ${received}`,
    );
  }
  const [word] = words;
  if (ignores && (holds_plan || word === "-")) {
    const what = holds_plan ? "the plan" : "the prompt";
    throw new UsageError(`Cannot use --stdin=ignore: - reads ${what} from stdin; remove one of them`);
  }
  if (word !== undefined && word !== "-") {
    const prompt = notBlank(word);
    if (ignores || holds_plan || io.in.terminal) return prompt;
    return withInput(prompt, await readPiped(io, max_bytes, ", or pass --stdin=ignore"));
  }
  if (holds_plan) {
    throw new UsageError("Cannot read the prompt: stdin holds the plan; give the prompt as an argument");
  }
  if ((io.in.terminal || ignores) && word === undefined) {
    throw new UsageError(
      'Cannot run without a prompt; write preamp run "What is 6 × 7?", or pipe the prompt in',
    );
  }
  return notBlank((await readPiped(io, max_bytes)).trimEnd());
}

/**
 * Reads all of stdin. A pipe that stays open, as of a program that started this one, is reported.
 *
 * @param otherwise How to run without it, at the end of messages.
 */
async function readPiped(io: Io, max_bytes: number, otherwise = ""): Promise<string> {
  const notice = io.in.terminal ? undefined : setTimeout(() => {
    io.err.write(`Reading stdin to its end for the prompt; close it${otherwise}\n`);
  }, SILENT_MS);
  try {
    return (await readInput("-", io, max_bytes)).text;
  } catch (error) {
    const { cause, message } = error as UsageError; // readInput() throws no other
    const mend = cause instanceof RangeError ? "; pipe in a part of it, raise --limits.max_body_bytes" : "";
    throw new UsageError(`${message}${mend}${otherwise}`, { cause });
  } finally {
    clearTimeout(notice);
  }
}

/** Returns a prompt with the text that was piped in, in a fence that the text cannot close. */
function withInput(prompt: string, text: string): string {
  return text.trim() === "" ? prompt : `${prompt}\n\nStandard input:\n\n${fenced(text)}`;
}

function notBlank(prompt: string): string {
  if (prompt.trim() === "") throw new UsageError("Cannot run with an empty prompt");
  return prompt;
}

/** Reads limits such as `max_cost_usd=0.10`; each may be given once. */
function readLimits(texts: readonly string[]): Partial<RunLimits> | undefined {
  if (texts.length === 0) return undefined;
  const data: JsonObject = {};
  for (const text of texts) {
    const [, written, value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (written === undefined) {
      throw refuse(`write NAME=VALUE, such as max_cost_usd=0.10, not ${JSON.stringify(text)}`);
    }
    const name = LIMIT_NAMES.find((limit) => limit === written);
    if (name === undefined) {
      const advice = adviceFor(written, LIMIT_NAMES, `the limits are ${LIMIT_NAMES.join(", ")}`);
      throw refuse(`there is no limit ${JSON.stringify(written.slice(0, 80))}; ${advice}`);
    }
    if (Object.hasOwn(data, name)) throw refuse(`${name} was given twice`);
    const number = name !== "max_cost_usd" && value.trim() !== "" && Number.isFinite(Number(value));
    data[name] = number ? Number(value) : value;
  }
  const findings = new Findings();
  const limits = checkLimits(data, [], findings);
  if (findings.errors.length === 0) return limits;
  throw refuse(
    ...findings.errors.map(({ message, hint }) => `${message}${hint === undefined ? "" : `: ${hint}`}`),
  );
}

function refuse(...facts: string[]): UsageError {
  return new UsageError(facts.map((fact) => `Cannot use --limit: ${fact}`).join("\n"));
}
