/** `preamp store vacuum`: deletes expired rows, and returns their space. */
import type { Command } from "../../commands.ts";
import { storeCommand } from "./store_command.ts";

export const command: Command = storeCommand("vacuum", {
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
});
