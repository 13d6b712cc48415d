/** Says once what a plan that `-p` names may touch. */
import { mayBeBundle } from "../../bundle/kinds.ts";
import { sha256 } from "../../sdk/digest.ts";
import { escapeUnprintable } from "../../text/escape.ts";
import { filePath, homeOf, STDIN_NAME } from "../../settings/paths.ts";
import type { UncheckedPlan } from "../plan_files.ts";
import { writeLabelled } from "../terminal/format.ts";
import type { Io } from "../terminal/io.ts";
import { TrustRecords } from "./trust_records.ts";

/** Most characters of the sentence. */
const MAX_SENTENCE = 600;

/**
 * Prints what a plan may touch when it runs for the first time, and when that has changed: the person has
 * named the file, and may not have read it. Files in `$PREAMP_HOME` are the person's own.
 */
export async function sayPlanOnce(
  { name, plan, base_url }: UncheckedPlan,
  io: Io,
  { workspace, env }: { workspace: URL; env: Io["env"] },
): Promise<void> {
  const home = homeOf(io);
  if (name === STDIN_NAME || home && base_url.startsWith(home.href)) return;
  const records = new TrustRecords(home);
  const folder = await Deno.realPath(new URL(".", base_url)).catch(() => null);
  if (folder === null) return; // reading the plan reports it
  const record = await records.read(folder);
  const known = Object.hasOwn(record.explained, name) ? record.explained[name]! : "";
  const text = sha256(typeof plan === "string" ? plan : JSON.stringify(plan));
  const has_other_files = typeof plan === "string" && mayBeBundle(plan, base_url);
  if (known.startsWith(text) && !has_other_files) return;
  let sentence: string;
  try {
    const { planSentence } = await import("../../app/plan_sentence.ts");
    sentence = await planSentence(plan, { base_url, workspace: filePath(workspace), env });
  } catch {
    return; // the check of the plan reports it
  }
  const said = sha256(sentence);
  if (!known.endsWith(said)) {
    const shown = sentence.length <= MAX_SENTENCE ? sentence : `${sentence.slice(0, MAX_SENTENCE)}…`;
    writeLabelled(io.err, "note", escapeUnprintable(`${name}: ${shown}`));
  }
  const explained = { ...record.explained, [name]: `${text} ${said}` };
  await records.write({ ...record, explained }).catch(() => {}); // it is said again the next time
}
