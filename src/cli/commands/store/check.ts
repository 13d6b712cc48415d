/** `preamp store check`: checks a store for damage, and counts what it holds. */
import type { StoreState } from "../../../store/store.ts";
import type { Answer, Command } from "../../commands.ts";
import { EXIT } from "../../errors.ts";
import { storeCommand } from "./store_command.ts";

export const command: Command = storeCommand("check", {
  summary: "Checks a store for damage and counts its rows. Exits 1 on damage.",
  json: "{problems, version, records, logs, entries, bytes}",
  creates: false,
  work: async (store) => checked(await store.state()),
  damaged: (problem) =>
    checked({ problems: [problem], version: 0, records: 0, logs: 0, entries: 0, bytes: 0 }),
});

function checked(state: StoreState): Answer {
  const { problems, version, records, logs, entries, bytes } = state;
  const damage = problems.map((problem) => `damage: ${problem}\n`).join("");
  const facts =
    `version ${version}, ${records} records, ${logs} logs with ${entries} entries, ${bytes} bytes`;
  const exit = problems.length === 0 ? EXIT.done : EXIT.failed;
  return { data: state, text: `${damage}${facts}\n`, exit };
}
