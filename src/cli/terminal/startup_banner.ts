/** What `serve` prints on stdout: its address, then something to paste (product.md, first five minutes). */

/** What the text is about. */
export interface Welcome {
  /** Base URL. */
  url: string;
  /**
   * How a caller shows who they are: `generated` prints the key that holds for this start, `configured` keys are never
   * printed, `none` needs no header.
   */
  auth: { kind: "generated"; key: string } | { kind: "configured" } | { kind: "none" };
  /** Whether a request without a plan gets the built-in demo, with its tool call and its approval. */
  demo: boolean;
}

const PROMPT = "What is 6 × 7?";

/** Returns the text after the first line, which is the base URL alone. */
export function welcomeText({ url, auth, demo }: Welcome): string {
  const key = auth.kind === "generated" ? auth.key : "$PREAMP_API_KEY";
  const header = auth.kind === "none" ? "" : ` \\\n  -H "Authorization: Bearer ${key}"`;
  const before = auth.kind === "configured" ? "# PREAMP_API_KEY is one of the keys of this server.\n" : "";
  const run = `curl -N ${url}/v1/runs${header} \\
  -H "Accept: text/event-stream" \\
  -H "Content-Type: application/json" \\
  -d '{"prompt": "${demo ? PROMPT : "Hello"}"}'`;
  if (!demo) return `\n# Run the plan "default" and watch its events:\n${before}${run}\n`;
  return `
# A tool call that asks first, and every event of it. Paste this into another shell:
${before}${run}

# The run now waits for a person. Allow the call from one more shell, and watch the first one go on:
waiting=$(curl -s "${url}/v1/runs?status=awaiting_approval&limit=1"${header})
run=$(echo "$waiting" | grep -o 'run_[0-9A-Za-z]*' | head -n 1)
approval=$(echo "$waiting" | grep -o 'apr_[0-9A-Za-z]*' | head -n 1)
curl -s "${url}/v1/runs/$run/approvals/$approval"${header} \\
  -H "Content-Type: application/json" \\
  -d '{"decision": "allow"}'
`;
}
