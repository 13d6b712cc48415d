/** Moves the long texts of a plan into files beside it, so that the plan keeps to its limit. Pure. */
import { exceedsBytes } from "../plan/parse/document_limits.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";

/** A text beside a plan. */
export interface TextFile {
  /** Path relative to the plan. */
  readonly path: string;
  readonly text: string;
}

/**
 * Returns a plan of at most `max_bytes`, and the texts that it names as `system: {file}`: the longest ones.
 * A plan that fits is returned as it is.
 *
 * @param folder Folder of the texts, relative to the plan.
 */
export function withTextFiles(
  plan: JsonObject,
  folder: string,
  max_bytes: number,
): { plan: JsonObject; files: TextFile[] } {
  const agents = isObject(plan.agents) ? plan.agents : {};
  const texts = Object.entries(agents).flatMap(([name, overlay]) =>
    isObject(overlay) && typeof overlay.system === "string"
      ? [{
        agent: name as string | null,
        text: overlay.system,
        path: `${folder}/agents/${fileName(name)}.md`,
      }]
      : []
  );
  if (typeof plan.system === "string") {
    texts.push({ agent: null, text: plan.system, path: `${folder}/system.md` });
  }
  texts.sort((a, b) => b.text.length - a.text.length);
  let small = plan;
  const files: TextFile[] = [];
  for (const { agent, text, path } of texts) {
    if (!exceedsBytes(JSON.stringify(small, null, 2), max_bytes)) break;
    const system = { file: `./${path}` };
    files.push({ path, text: text.replaceAll("$${", "${") }); // a file is sent as it is
    small = agent === null ? { ...small, system } : {
      ...small,
      agents: {
        ...small.agents as JsonObject,
        [agent]: { ...(small.agents as JsonObject)[agent] as JsonObject, system },
      },
    };
  }
  return { plan: small, files };
}

/** Returns a name of an agent as that of a file; different names stay different. */
function fileName(name: string): string {
  return name.replaceAll(
    /[^\w-]/gu,
    (letter) => letter === ":" ? "." : `%${letter.codePointAt(0)!.toString(16)}`,
  );
}
