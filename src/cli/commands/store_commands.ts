/** `preamp store check`, `store migrate` and `store vacuum`: maintenance of the store that the settings name. */
import { openMaintenance } from "../../store/open_store.ts";
import type { Maintenance } from "../../store/store.ts";
import { type Arguments, UsageError } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../errors.ts";
import { formatFlags, wantsJson, writeJson } from "../output_format.ts";
import { readSettings, settingFlags } from "../settings.ts";
import { lastingStore, storeFailure } from "../store.ts";
import type { Io } from "../terminal/io.ts";

/** `preamp store check` */
export const check: Command = command(
  "check",
  "Checks a store for damage and counts its rows. Exits 1 on damage.",
  {
    json: "{problems, version, records, logs, entries, bytes}",
    async work(store, io, json) {
      const state = await store.state();
      const { problems, version, records, logs, entries, bytes } = state;
      if (json) writeJson(io, state);
      else {
        const facts =
          `version ${version}, ${records} records, ${logs} logs with ${entries} entries, ${bytes} bytes`;
        io.out.write(problems.map((problem) => `damage: ${problem}\n`).join("") + `${facts}\n`);
      }
      return problems.length === 0 ? EXIT.done : EXIT.failed;
    },
  },
);

/** `preamp store migrate` */
export const migrate: Command = command(
  "migrate",
  "Creates the tables of a store, or updates those of an older version.",
  {
    json: "{from, to}",
    async work(store, io, json) {
      const from = store.opened_version;
      const { version: to } = await store.state();
      if (json) writeJson(io, { from, to });
      else io.out.write(from === to ? `version ${to}: nothing to do\n` : `from version ${from} to ${to}\n`);
      return EXIT.done;
    },
  },
);

/** `preamp store vacuum` */
export const vacuum: Command = command(
  "vacuum",
  "Deletes expired rows and returns their space. Servers may run meanwhile.",
  {
    json: "{before_bytes, after_bytes}",
    async work(store, io, json) {
      const { bytes: before_bytes } = await store.state();
      await store.vacuum(Date.now());
      const { bytes: after_bytes } = await store.state();
      if (json) writeJson(io, { before_bytes, after_bytes });
      else io.out.write(`${before_bytes} bytes before, ${after_bytes} bytes after\n`);
      return EXIT.done;
    },
  },
);

interface Work {
  /** Form of the JSON output, for the help. */
  json: string;
  work(store: Maintenance, io: Io, json: boolean): Promise<number>;
}

function command(name: string, summary: string, { json, work }: Work): Command {
  return {
    usage: `store ${name} [flags]`,
    summary,
    flags: [...settingFlags(["store"]), ...formatFlags({ help: `text (default), or ${json}` })],
    details: () => "Without --store it is the store of preamp serve.\n",
    async run(args: Arguments, io: Io): Promise<number> {
      if (args.rest.length > 0) {
        throw new UsageError(`Cannot use ${JSON.stringify(args.rest[0])}: write --store ${args.rest[0]}`);
      }
      const json = wantsJson(args);
      const name = lastingStore(await readSettings(args, io));
      let store: Maintenance | undefined;
      try {
        store = await openMaintenance(name);
        return await work(store, io, json);
      } catch (error) {
        throw storeFailure(name, error);
      } finally {
        await store?.close();
      }
    },
  };
}
