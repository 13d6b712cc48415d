/** Converts the arguments of `preamp run` to a run request. */
import { checkLimits, LIMIT_NAMES } from "../plan/check/check_limits.ts";
import { didYouMean } from "../sdk/did_you_mean.ts";
import { Findings } from "../sdk/findings.ts";
import type { RunRequest } from "../runs/types.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { RunLimits } from "../sdk/contracts.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";
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

/** Reads plans, limits and prompt. @throws {UsageError} for invalid arguments. @throws {DocumentFailure} for an invalid file. */
export async function readRequest(args: Arguments, io: Io, settings: Settings): Promise<LocalRunRequest> {
  const files = args.all("plan");
  const limits = readLimits(args.all("limit"));
  const named = await readNamedPlan(args, io, settings);
  const plan = named || files.length > 0 ? await readPlans(files, io, named) : undefined;
  const prompt = await readPrompt(args.rest, io, files.includes("-"));
  const request: RunRequest = {
    prompt,
    ...(plan ? { plan: plan.plan } : {}),
    ...modelOf(args),
    ...(limits ? { limits } : {}),
  };
  return { request, plan_name: plan?.name ?? "plan", ...(plan ? { base_url: plan.base_url } : {}) };
}

async function readPrompt(words: readonly string[], io: Io, stdin_is_taken: boolean): Promise<string> {
  if (words.length > 1) {
    throw new UsageError(
      `Cannot take ${words.length} prompts; put the prompt in quotes. Received: ${
        words.map((word) => JSON.stringify(word.slice(0, 40))).join(" ")
      }`,
    );
  }
  const [word] = words;
  if (word !== undefined && word !== "-") return notBlank(word);
  if (stdin_is_taken) {
    throw new UsageError("Cannot read the prompt: stdin holds the plan; give the prompt as an argument");
  }
  if (io.in.terminal && word === undefined) {
    throw new UsageError(
      'Cannot run without a prompt; write preamp run "What is 6 × 7?", or pipe the prompt in',
    );
  }
  try {
    return notBlank((await io.in.text()).trimEnd());
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError("Cannot read the prompt: stdin is not UTF-8 text", { cause: error });
  }
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
    const at = text.indexOf("=");
    if (at <= 0) {
      throw new UsageError(
        `Cannot use --limit: write NAME=VALUE, such as max_cost_usd=0.10, not ${JSON.stringify(text)}`,
      );
    }
    const name = text.slice(0, at);
    const value = text.slice(at + 1);
    if (!LIMIT_NAMES.some((limit) => limit === name)) {
      const meant = didYouMean(name, LIMIT_NAMES, 3);
      throw new UsageError(
        `Cannot use --limit: there is no limit ${JSON.stringify(name.slice(0, 80))}; ${
          meant === undefined ? `the limits are ${LIMIT_NAMES.join(", ")}` : `did you mean ${meant}?`
        }`,
      );
    }
    if (Object.hasOwn(data, name)) throw new UsageError(`Cannot use --limit: ${name} was given twice`);
    const number = name !== "max_cost_usd" && value.trim() !== "" && Number.isFinite(Number(value));
    Object.defineProperty(data, name, { value: number ? Number(value) : value, enumerable: true });
  }
  const findings = new Findings();
  const limits = checkLimits(data, [], findings);
  if (findings.errors.length === 0) return limits;
  const lines = findings.errors.map(({ message, hint }) =>
    `Cannot use --limit: ${message}${hint === undefined ? "" : `: ${hint}`}`
  );
  throw new UsageError(lines.join("\n"));
}
