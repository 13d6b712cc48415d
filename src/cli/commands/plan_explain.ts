/** `preamp plan explain`: prints what a plan may touch. Fetches its modules and executes none. */
import type { Arguments, Flag } from "../arguments.ts";
import { type Command, TERMINAL } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import { explanationText } from "../explain_text.ts";
import type { Io } from "../terminal/io.ts";
import { readPlans } from "../plan_files.ts";
import { wantsJson, writeJson } from "../output_format.ts";
import { FORMAT_FLAGS, MODEL_FLAG, modelOf, PLAN_FLAG, planNames, withRuntime } from "./plan_command.ts";
import { policyFlags, settingFlags } from "../settings.ts";

const OWN_FLAGS: readonly Flag[] = [
  PLAN_FLAG,
  MODEL_FLAG,
  ...FORMAT_FLAGS,
  { name: "strict", help: "exit 1 if there is a red flag" },
  ...settingFlags(["frozen"]),
];

/** The command. */
export const command: Command = {
  usage: "plan explain [flags] <file>…",
  summary:
    "Prints what a plan may touch: modules with hashes, permissions, variables, limits, red flags. Fetches modules, runs none.",
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `A plan.lock.json beside the plan is used. wanted: permissions that the module declares; asked: those that the plan
gives it; granted: those of them that this process has; refused: the rest. Paths in the Deno flags are relative to the
plan's folder.
Exit codes: 0 explained, 1 a module cannot be loaded or does not match its pin (--strict: or there is a red flag),
3 the plan is invalid, 4 it is refused by policy.

  preamp plan explain plans/support.yaml
  preamp plan explain -p base.yaml -p prod.yaml --output-format json
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const names = planNames(args, "explain");
  const json = wantsJson(args);
  const { name, plan, base_url } = await readPlans(names, io);
  const explanation = await withRuntime(args, io, async ({ plans }) => {
    try {
      return await plans.explain({ plan, ...modelOf(args) }, TERMINAL, { base_url });
    } catch (error) {
      throw new DocumentFailure(name, error);
    }
  }, { overridden: true });
  if (json) writeJson(io, explanation);
  else io.out.write(explanationText(explanation, name, io.out));
  return args.has("strict") && explanation.red_flags.length > 0 ? EXIT.failed : EXIT.done;
}
