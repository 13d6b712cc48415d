/** `preamp config reference`: prints the page of all settings. */
import { referencePage } from "../../../policy/reference.ts";
import type { Command } from "../../commands.ts";

export const command: Command = {
  usage: "config reference",
  summary: "Prints the reference of all settings as Markdown.",
  flags: [],
  max_arguments: 0,
  run: () => Promise.resolve({ text: referencePage() }),
};
