/**
 * `preamp plan lock`: writes `plan.lock.json` with the hashes of all files of a plan's modules. Executes
 * none.
 */
import { LOCK_FILE } from "../../../app/named_plans.ts";
import { formatLock, type Lock, lockDifferences, lockOver, parseLock } from "../../../plan/lock.ts";
import { escapeUnprintable } from "../../../text/escape.ts";
import { type Arguments, formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { TERMINAL } from "../../terminal_caller.ts";
import { EXIT, inDocument } from "../../errors.ts";
import { displayPath } from "../../module_target.ts";
import { readOptional, replaceFile } from "../../../settings/paths.ts";
import { PLAN_FLAG, planNames, readPlans, withPlans } from "../../plan_files.ts";
import { withSettings } from "../../settings.ts";
import { counted, styleOf } from "../../terminal/format.ts";
import type { Io } from "../../terminal/io.ts";

export const command: Command = {
  usage: "plan lock [flags] <file>…",
  summary:
    `Writes ${LOCK_FILE} beside the plan: URL, hash and size of every file of its modules. Fetches modules, runs none.`,
  flags: withSettings([
    PLAN_FLAG,
    { name: "check", help: "write nothing; exit 1 if the lock differs from the modules" },
    { name: "prune", help: "remove the entries of other plans of the folder" },
    ...formatFlags({ help: "text (default), or {file, status, modules, files, differences}" }),
  ]),
  details: () =>
    `Plans of one folder share its lock: entries of other plans are kept. run, plan explain and plan lock --check refuse a
module whose files differ from the lock. Several files are merged first, as in \`preamp run\`; the lock is written
beside the first file.
Exit codes: 0 written, or with --check up to date; 1 the lock differs, or a module cannot be loaded; 3 the plan or the
lock is invalid; 4 refused by policy.
`,
  run,
};

async function run(args: Arguments, io: Io): Promise<Answer> {
  const names = planNames(args, "lock");
  if (args.has("check") && args.has("prune")) {
    throw new UsageError("Cannot use --prune with --check: --check writes nothing");
  }
  const { name, plan, base_url } = await readPlans(names, io);
  const url = new URL(LOCK_FILE, base_url);
  const shown = displayPath(url.href, io).replace(/^\.\//, "");
  const fresh = await withPlans(
    args,
    io,
    ({ lock }) => inDocument(name, lock({ plan }, TERMINAL, { base_url })),
  );
  const text = await readOptional(url, shown);
  const result = args.has("check")
    ? await check(shown, text, fresh)
    : await write(url, shown, text, fresh, args.has("prune"));
  const modules = Object.keys(fresh.modules).length;
  const servers = Object.keys(fresh.servers).length;
  const texts = Object.keys(fresh.texts).length;
  const files = Object.keys(fresh.files).length;
  const data: LockAnswer = {
    file: decodeURIComponent(url.pathname),
    modules,
    files,
    servers,
    texts,
    ...result,
  };
  return {
    data,
    text: answerText(data, shown, io),
    exit: data.status === "differs" ? EXIT.failed : EXIT.done,
  };
}

/** The result of the command. */
interface LockAnswer {
  file: string;
  status: "written" | "unchanged" | "nothing_to_lock" | "ok" | "differs";
  /** Number of locked modules of the plan. */
  modules: number;
  /** Number of their files. */
  files: number;
  /** Number of locked MCP servers of the plan. */
  servers: number;
  /** Number of locked files with texts for the model. */
  texts: number;
  /** Differences between lock and modules; empty unless `status` is `differs`. */
  differences: string[];
}

type LockResult = Pick<LockAnswer, "status" | "differences">;

async function check(shown: string, text: string | undefined, fresh: Lock): Promise<LockResult> {
  if (text === undefined && isEmpty(fresh)) {
    return { status: "ok", differences: [] };
  }
  const differences = text === undefined
    ? [`there is no ${shown}`]
    : lockDifferences(await readLock(shown, text), fresh);
  return { status: differences.length === 0 ? "ok" : "differs", differences };
}

async function write(
  url: URL,
  shown: string,
  text: string | undefined,
  fresh: Lock,
  prune: boolean,
): Promise<LockResult> {
  const lock = text === undefined || prune ? fresh : lockOver(fresh, await readLock(shown, text));
  if (text === undefined && isEmpty(lock)) {
    return { status: "nothing_to_lock", differences: [] };
  }
  const written = formatLock(lock);
  if (written === text) return { status: "unchanged", differences: [] };
  // atomically: an incomplete lock would stop every run
  await replaceFile(url, written, shown);
  return { status: "written", differences: [] };
}

function isEmpty({ modules, servers, texts }: Lock): boolean {
  return [modules, servers, texts].every((part) => Object.keys(part).length === 0);
}

function answerText(
  { status, differences, modules, files, servers, texts }: LockAnswer,
  shown: string,
  io: Io,
): string {
  const { bold, green, red } = styleOf(io.out);
  const counts = [
    counted(modules, "module"),
    counted(files, "file"),
    ...servers === 0 ? [] : [counted(servers, "MCP server")],
    ...texts === 0 ? [] : [counted(texts, "text")],
  ].join(", ");
  switch (status) {
    case "nothing_to_lock":
      return "Nothing to lock: every module is built in\n";
    case "ok":
      return `${green("ok")}, ${
        modules + servers + texts === 0 ? "nothing to lock: every module is built in" : counts
      }\n`;
    case "differs":
      return differences.map((text) => `${red("differs")}  ${escapeUnprintable(text)}\n`).join("");
    default:
      return `${green(status)}  ${bold(escapeUnprintable(shown))}, ${counts}\n`;
  }
}

async function readLock(shown: string, text: string): Promise<Lock> {
  return await inDocument(shown, parseLock(text));
}
