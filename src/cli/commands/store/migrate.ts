/** `preamp store migrate`: creates the tables of a store, or updates them. */
import type { Command } from "../../commands.ts";
import { storeCommand } from "./store_command.ts";

export const command: Command = storeCommand("migrate", {
  summary: "Creates the tables of a store, or updates those of an older version.",
  json: "{from, to}",
  creates: true,
  async work(store) {
    const from = store.opened_version;
    const { version: to } = await store.state();
    const text = from === to ? `version ${to}: nothing to do\n` : `from version ${from} to ${to}\n`;
    return { data: { from, to }, text };
  },
});
