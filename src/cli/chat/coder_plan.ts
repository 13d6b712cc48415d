/**
 * The plan of `preamp chat` without `-p`: `plans/coder.yaml`, a coder in the folder where it is started. The
 * compile task puts the file beside the program's own code.
 */
import type { InputText } from "../../settings/paths.ts";

/** Resolves to the text of the plan. */
export async function readCoderPlan(): Promise<InputText> {
  const path = Deno.build.standalone ? "coder.yaml" : "../../../plans/coder.yaml";
  const url = new URL(path, import.meta.url);
  return { name: "the coder's plan", url, text: await Deno.readTextFile(url) };
}
