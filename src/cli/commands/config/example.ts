/** `preamp config example`: prints a `preamp.yaml` with every setting. */
import { exampleDocument } from "../../../policy/reference.ts";
import type { Command } from "../../commands.ts";

export const command: Command = {
  usage: "config example",
  summary: "Prints a preamp.yaml with every setting, its meaning and its default.",
  flags: [],
  max_arguments: 0,
  run: () => Promise.resolve({ text: exampleDocument() }),
};
