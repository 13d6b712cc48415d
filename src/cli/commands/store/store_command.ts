/** Maintenance of the store that the settings name: `preamp store check`, `migrate` and `vacuum`. */
import { errorMessage } from "../../../sdk/errors.ts";
import { isDamage } from "../../../store/rows.ts";
import { describeStore, openMaintenance, type StoreName } from "../../../store/open.ts";
import type { Maintenance } from "../../../store/store.ts";
import { formatFlags, UsageError } from "../../arguments.ts";
import type { Answer, Command } from "../../commands.ts";
import { lastingStore, storeFailure } from "../../../settings/settings.ts";
import { reportedSettings, settingFlags } from "../../settings.ts";

/** The work of a command on a store. */
interface Work {
  summary: string;
  /** Form of the JSON output, for the help. */
  json: string;
  /** Whether a file that does not exist is created. */
  creates: boolean;
  work(store: Maintenance): Promise<Answer>;
  /** Returns the answer for a store that is too damaged to be opened or read. Default: an error. */
  damaged?(problem: string): Answer;
}

/** Returns the command `store NAME`. */
export function storeCommand(name: string, { summary, json, creates, work, damaged }: Work): Command {
  return {
    usage: `store ${name} [flags]`,
    summary,
    flags: [...settingFlags(["store"]), ...formatFlags({ help: `text (default), or ${json}` })],
    details: () => "Without --store it is the store of preamp serve.\n",
    async run(args, io) {
      const [extra] = args.rest;
      if (extra !== undefined) {
        throw new UsageError(`Cannot use ${JSON.stringify(extra)}: write --store ${extra}`);
      }
      const name = lastingStore(await reportedSettings(args, io));
      if (!creates) await requireStore(name);
      let store: Maintenance | undefined;
      try {
        store = await openMaintenance(name);
        return await work(store);
      } catch (error) {
        if (damaged && isDamage(error)) return damaged(errorMessage(error));
        throw storeFailure(name, error);
      } finally {
        await store?.close();
      }
    },
  };
}

/** Refuses a SQLite store without a file, which opening it would create. @throws {UsageError} */
export async function requireStore(name: StoreName): Promise<void> {
  if (name.kind !== "sqlite" || await exists(name.path)) return;
  const fact = "there is no such file; preamp store migrate creates it";
  throw new UsageError(`Cannot find the store ${describeStore(name)}: ${fact}`);
}

/** Resolves to whether there is a file; true if that cannot be found out. */
async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}
