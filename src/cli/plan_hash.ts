/** `preamp plan hash`: the canonical hash of a plan as written, merged when there are several files (plan.md, hash). */
import { hashPlan } from "../plan/compile.ts";
import { parsePlanText } from "../plan/parse.ts";
import type { JsonObject } from "../sdk/json.ts";
import type { Arguments } from "./arguments.ts";
import type { Command } from "./command.ts";
import { EXIT } from "./exit.ts";
import { DocumentFailure } from "./failure.ts";
import type { Io } from "./io.ts";
import { type GivenPlan, readPlans } from "./plan_files.ts";
import { UsageError } from "./usage_error.ts";

/** The command. */
export const command: Command = {
  usage: "plan hash [--json] <file>…",
  summary:
    "Prints the hash of a plan as written; several files are merged first, as `preamp run` does. `-` is stdin.",
  flags: [{ name: "json", help: "print {plan_hash, files}" }],
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  if (args.rest.length === 0) throw new UsageError("Cannot hash a plan: no file was named");
  const plan_hash = hashPlan(await dataOf(await readPlans(args.rest, io)));
  io.out.write(args.has("json") ? `${JSON.stringify({ plan_hash, files: args.rest })}\n` : `${plan_hash}\n`);
  return EXIT.done;
}

async function dataOf({ plan, name }: GivenPlan): Promise<JsonObject> {
  if (typeof plan !== "string") return plan;
  try {
    return (await parsePlanText(plan, { name })).data;
  } catch (error) {
    throw new DocumentFailure(name, error);
  }
}
