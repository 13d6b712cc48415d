/** `preamp plan lock`: writes `plan.lock.json` with the hashes of all files of a plan's modules. Executes none. */
import { LOCK_FILE } from "../../app/named_plans.ts";
import { formatLock, type Lock, lockDifferences, lockOver, parseLock } from "../../plan/lock.ts";
import { type Arguments, type Flag, UsageError } from "../arguments.ts";
import { type Command, TERMINAL } from "../command.ts";
import { DocumentFailure, EXIT } from "../errors.ts";
import { readOptional } from "../paths.ts";
import type { Io } from "../terminal/io.ts";
import { readPlans } from "../plan_files.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { PLAN_FLAG, planNames, withRuntime } from "./plan_command.ts";
import { policyFlags, settingFlags } from "../settings.ts";
import { styleOf } from "../terminal/format.ts";
import { escapeUnprintable } from "../../text/escape.ts";

const OWN_FLAGS: readonly Flag[] = [
  PLAN_FLAG,
  { name: "check", help: "write nothing; exit 1 if the lock differs from the modules" },
  { name: "prune", help: "remove the entries of other plans of the folder" },
  ...formatFlags({ help: "text (default), or {file, status, modules, files, differences}" }),
  ...settingFlags(),
];

/** The command. */
export const command: Command = {
  usage: "plan lock [flags] <file>…",
  summary:
    `Writes ${LOCK_FILE} beside the plan: URL, hash and size of every file of its modules. Fetches modules, runs none.`,
  flags: [...OWN_FLAGS, ...policyFlags(OWN_FLAGS)],
  details: () =>
    `Plans of one folder share its lock: entries of other plans are kept. run, plan explain and plan lock --check refuse a
module whose files differ from the lock. Several files are merged first, as in \`preamp run\`; the lock is written
beside the first file.
Exit codes: 0 written, or with --check up to date; 1 the lock differs, or a module cannot be loaded; 3 the plan or the
lock is invalid; 4 refused by policy.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<number> {
  const names = planNames(args, "lock");
  if (args.has("check") && args.has("prune")) {
    throw new UsageError("Cannot use --prune with --check: --check writes nothing");
  }
  const json = wantsJson(args);
  const { name, plan, base_url } = await readPlans(names, io);
  const url = new URL(LOCK_FILE, base_url);
  const fresh = await withRuntime(args, io, async ({ plans }) => {
    try {
      return await plans.lock({ plan }, TERMINAL, { base_url });
    } catch (error) {
      throw new DocumentFailure(name, error);
    }
  });
  const text = await readOptional(url, LOCK_FILE);
  const result = args.has("check")
    ? await check(text, fresh)
    : await write(url, text, fresh, args.has("prune"));
  const modules = Object.keys(fresh.modules).length;
  const files = Object.keys(fresh.files).length;
  const answer: LockAnswer = { file: decodeURIComponent(url.pathname), modules, files, ...result };
  if (json) writeJson(io, answer);
  else io.out.write(answerText(answer, io));
  return answer.status === "differs" ? EXIT.failed : EXIT.done;
}

/** The result of the command. */
interface LockAnswer {
  file: string;
  status: "written" | "unchanged" | "nothing_to_lock" | "ok" | "differs";
  /** Number of locked modules of the plan. */
  modules: number;
  /** Number of their files. */
  files: number;
  /** Differences between lock and modules; empty unless `status` is `differs`. */
  differences: string[];
}

type LockResult = Pick<LockAnswer, "status" | "differences">;

async function check(text: string | undefined, fresh: Lock): Promise<LockResult> {
  if (text === undefined && Object.keys(fresh.modules).length === 0) {
    return { status: "ok", differences: [] };
  }
  const differences = text === undefined
    ? [`there is no ${LOCK_FILE}`]
    : lockDifferences(await readLock(text), fresh);
  return { status: differences.length === 0 ? "ok" : "differs", differences };
}

async function write(
  url: URL,
  text: string | undefined,
  fresh: Lock,
  prune: boolean,
): Promise<LockResult> {
  const lock = text === undefined || prune ? fresh : lockOver(fresh, await readLock(text));
  if (text === undefined && Object.keys(lock.modules).length === 0) {
    return { status: "nothing_to_lock", differences: [] };
  }
  const written = formatLock(lock);
  if (written === text) return { status: "unchanged", differences: [] };
  await replaceFile(url, written);
  return { status: "written", differences: [] };
}

function answerText({ status, differences, modules, files }: LockAnswer, io: Io): string {
  const { bold, green, red } = styleOf(io.out);
  const counts = `${counted(modules, "module")}, ${counted(files, "file")}`;
  switch (status) {
    case "nothing_to_lock":
      return "Nothing to lock: every module is built in\n";
    case "ok":
      return `${green("ok")}, ${modules === 0 ? "nothing to lock: every module is built in" : counts}\n`;
    case "differs":
      return differences.map((text) => `${red("differs")}  ${escapeUnprintable(text)}\n`).join("");
    default:
      return `${green(status)}  ${bold(LOCK_FILE)}, ${counts}\n`;
  }
}

async function readLock(text: string): Promise<Lock> {
  try {
    return await parseLock(text);
  } catch (error) {
    throw new DocumentFailure(LOCK_FILE, error);
  }
}

/** Replaces a file atomically: an incomplete lock would stop every run. */
async function replaceFile(url: URL, text: string): Promise<void> {
  const temporary = new URL(`${url.href}.${crypto.randomUUID()}`);
  try {
    await Deno.writeTextFile(temporary, text, { createNew: true });
    await Deno.rename(temporary, url);
  } catch (error) {
    await Deno.remove(temporary).catch(() => {}); // it may not exist
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(`Cannot write ${LOCK_FILE}: ${reason}`, { cause: error });
  }
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
