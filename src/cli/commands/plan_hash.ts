/** `preamp plan hash`: prints the canonical hash of a plan as written; several files are merged. */
import { parsePlanText } from "../../plan/parse/parse.ts";
import { canonicalHash } from "../../sdk/digest.ts";
import type { JsonObject } from "../../sdk/json.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { PLAN_FLAG, planNames } from "./plan_command.ts";
import type { Arguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import type { Io } from "../terminal/io.ts";
import { readPlans, type UncheckedPlan } from "../plan_files.ts";

/** The command. */
export const command: Command = {
  usage: "plan hash [flags] <file>…",
  summary:
    "Prints the hash of a plan as written; several files are merged first, as in `preamp run`. `-` is stdin.",
  flags: [PLAN_FLAG, ...formatFlags({ help: "the hash (default), or {plan_hash, files}" })],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const files = planNames(args, "hash");
  const json = wantsJson(args);
  const plan_hash = canonicalHash(await dataOf(await readPlans(files, io)));
  if (json) writeJson(io, { plan_hash, files });
  else io.out.write(`${plan_hash}\n`);
  return EXIT.done;
}

async function dataOf({ plan, name }: UncheckedPlan): Promise<JsonObject> {
  if (typeof plan !== "string") return plan;
  try {
    return (await parsePlanText(plan, { name })).data;
  } catch (error) {
    throw new DocumentFailure(name, error);
  }
}
