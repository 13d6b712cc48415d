/**
 * `preamp store check`, `store migrate` and `store vacuum`: maintenance of the store that the settings name.
 */
import { errorMessage } from "../../sdk/errors.ts";
import { isDamage } from "../../store/rows.ts";
import { describeStore, type Maintenance, openMaintenance, type StoreState } from "../../store/store.ts";
import { formatFlags, UsageError } from "../arguments.ts";
import type { Answer, Command, Commands } from "../commands.ts";
import { EXIT } from "../errors.ts";
import { lastingStore, reportedSettings, settingFlags, storeFailure } from "../settings.ts";

export const commands: Commands = {
  "store check": command("check", {
    summary: "Checks a store for damage and counts its rows. Exits 1 on damage.",
    json: "{problems, version, records, logs, entries, bytes}",
    creates: false,
    work: async (store) => checked(await store.state()),
    damaged: (problem) =>
      checked({ problems: [problem], version: 0, records: 0, logs: 0, entries: 0, bytes: 0 }),
  }),
  "store migrate": command("migrate", {
    summary: "Creates the tables of a store, or updates those of an older version.",
    json: "{from, to}",
    creates: true,
    async work(store) {
      const from = store.opened_version;
      const { version: to } = await store.state();
      const text = from === to ? `version ${to}: nothing to do\n` : `from version ${from} to ${to}\n`;
      return { data: { from, to }, text };
    },
  }),
  "store vacuum": command("vacuum", {
    summary: "Deletes expired rows and returns their space. Servers may run meanwhile.",
    json: "{before_bytes, after_bytes}",
    creates: false,
    async work(store) {
      const { bytes: before_bytes } = await store.state();
      await store.vacuum(Date.now());
      const { bytes: after_bytes } = await store.state();
      const text = `${before_bytes} bytes before, ${after_bytes} bytes after\n`;
      return { data: { before_bytes, after_bytes }, text };
    },
  }),
};

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

function checked(state: StoreState): Answer {
  const { problems, version, records, logs, entries, bytes } = state;
  const damage = problems.map((problem) => `damage: ${problem}\n`).join("");
  const facts =
    `version ${version}, ${records} records, ${logs} logs with ${entries} entries, ${bytes} bytes`;
  const exit = problems.length === 0 ? EXIT.done : EXIT.failed;
  return { data: state, text: `${damage}${facts}\n`, exit };
}

function command(name: string, { summary, json, creates, work, damaged }: Work): Command {
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
      if (!creates && name.kind === "sqlite" && !await exists(name.path)) {
        throw new UsageError(
          `Cannot find the store ${
            describeStore(name)
          }: there is no such file; preamp store migrate creates it`,
        );
      }
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

/** Resolves to whether there is a file; true if that cannot be found out. */
async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}
