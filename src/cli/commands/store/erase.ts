/** `preamp store erase`: deletes all runs and sessions of a namespace. */
import { contentOf, eraseNamespace } from "../../../runs/storage/erase.ts";
import { describeStore, openStore } from "../../../store/open.ts";
import { formatFlags, UsageError } from "../../arguments.ts";
import type { Command } from "../../commands.ts";
import { requireStore } from "./store_command.ts";
import { lastingStore, storeFailure } from "../../../settings/settings.ts";
import { reportedSettings, settingFlags } from "../../settings.ts";

export const command: Command = {
  usage: "store erase --namespace NAME [flags]",
  summary: "Deletes all runs, sessions, messages and logs of a namespace. Servers may run meanwhile.",
  flags: [
    { name: "namespace", value: "NAME", help: "namespace of the keys whose content is deleted" },
    { name: "yes", help: "deletes; without it the command says what it would delete" },
    ...settingFlags(["store"]),
    ...formatFlags({ help: "text (default), or {runs, sessions, erased}" }),
  ],
  details: () =>
    "Without --store it is the store of preamp serve. Runs that have not ended must be cancelled first.\n",
  async run(args, io) {
    const namespace = args.value("namespace");
    if (!namespace) throw new UsageError("Cannot erase: name what to erase with --namespace NAME");
    const name = lastingStore(await reportedSettings(args, io));
    await requireStore(name);
    const store = await openStore(name).catch((error) => {
      throw storeFailure(name, error);
    });
    try {
      const { runs, open, sessions } = await contentOf(store, namespace);
      const content = `${runs} runs and ${sessions} sessions of ${JSON.stringify(namespace)} in ${
        describeStore(name)
      }`;
      const erases = args.has("yes");
      if (erases && open > 0) {
        throw new UsageError(`Cannot erase ${content}: ${open} runs have not ended; cancel them, or wait`);
      }
      if (erases) await eraseNamespace(store, namespace);
      const text = erases ? `erased ${content}\n` : `would erase ${content}; add --yes to do it\n`;
      return { data: { runs, sessions, erased: erases }, text };
    } finally {
      await store.close();
    }
  },
};
