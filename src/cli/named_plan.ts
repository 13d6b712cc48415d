/** Finds the plan of `preamp run --profile NAME` in the folder of named plans or in `$PREAMP_HOME/plans/`. */
import { NamedPlans } from "../app/named_plans.ts";
import { didYouMean } from "../sdk/did_you_mean.ts";
import { type Arguments, UsageError } from "./arguments.ts";
import type { Io } from "./terminal/io.ts";
import type { PlanText } from "./plan_files.ts";
import type { Settings } from "./settings.ts";

/** Resolves to the plan that `--profile` or `--bundle` names; undefined without them. @throws {UsageError} if it does not exist. */
export async function readNamedPlan(
  args: Arguments,
  io: Io,
  { plans, home }: Pick<Settings, "plans" | "home">,
): Promise<PlanText | undefined> {
  if (args.has("profile") && args.has("bundle")) {
    throw new UsageError("Cannot use --profile with --bundle: they name the same plan");
  }
  const flag = args.has("bundle") ? "bundle" : "profile";
  const name = args.value(flag);
  if (name === undefined) return undefined;
  const folders = home ? [plans, new URL("plans/", home)] : [plans];
  const collections = folders.map((folder) => new NamedPlans(folder));
  for (const collection of collections) {
    const file = await collection.find(name);
    if (file) return { name: pathOf(file.base_url, io.cwd), url: new URL(file.base_url), text: file.text };
  }
  const names = [...new Set((await Promise.all(collections.map((collection) => collection.names()))).flat())]
    .sort();
  const places = folders.map((folder) => pathOf(folder.href, io.cwd)).join(" or ");
  throw new UsageError(
    `Cannot use --${flag}: there is no plan named ${JSON.stringify(name)} in ${places}${
      adviceFor(name, names)
    }`,
  );
}

function adviceFor(name: string, names: readonly string[]): string {
  if (names.length === 0) return ": put a plan there as NAME.yaml, or name a file with -p FILE";
  const file = /[/\\]|\.(ya?ml|json)$/.test(name) ? "; a file is named with -p FILE" : "";
  const meant = didYouMean(name, names);
  return `${meant === undefined ? "" : `: did you mean "${meant}"?`}${
    meant === undefined ? ": " : " "
  }The plans are ${names.join(", ")}${file}`;
}

/** Returns a path for messages: relative if it is inside the working directory. */
function pathOf(url: string, cwd: URL): string {
  return decodeURIComponent(url.startsWith(cwd.href) ? url.slice(cwd.href.length) : new URL(url).pathname);
}
