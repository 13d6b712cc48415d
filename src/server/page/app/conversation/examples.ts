/** What a first visit offers: runs of a scripted model, which cost nothing and need no key. */

/** A prompt with its plan. */
interface Example {
  readonly prompt: string;
  /** What there is to see, as a sentence without its dot. */
  readonly shows: string;
  /** YAML. */
  readonly plan: string;
}

const SESSION = `session:
  orchestrator: loop-streaming
  context: context-simple
`;

/** All examples. */
export const EXAMPLES: readonly Example[] = [
  {
    prompt: "What is 6 × 7?",
    shows: "the model calls a tool, and you are asked before it runs",
    plan: `# The tool runs once you allow it.
${SESSION}system: You are the demo agent of Preamp. Be brief.
providers: [provider-mock]
tools: [tool-calculator]
hooks:
  - module: hooks-approval
    config: { rules: [{ tool: calculator, action: ask }] }
`,
  },
  {
    prompt: "How much water do 4 people need on a hike of 6 hours?",
    shows: "two tools, a list and a calculator, one after the other",
    plan: `# The answers of the model are written here. Name a real one below to have it think.
${SESSION}system: Work in steps, and keep a list of them.
providers:
  - module: provider-mock
    config:
      responses:
        - text: Two steps. I note them first.
          tool_calls:
            - name: todo
              arguments:
                action: create
                todos:
                  - { content: Work out the water, status: in_progress }
                  - { content: Answer, status: pending }
        - tool_calls:
            - { name: calculator, arguments: { expression: 4 * 6 * 0.5 } }
            - name: todo
              arguments:
                action: update
                todos:
                  - { content: Work out the water, status: completed }
                  - { content: Answer, status: in_progress }
        - text: Take **12 litres**. That is half a litre for each person and hour.
      after: echo
tools: [tool-todo, tool-calculator]
`,
  },
  {
    prompt: "What is 12 * (3 + 4)?",
    shows: "the run reaches a limit, waits, and continues once you raise it",
    plan: `# One model call is not enough for a tool and an answer.
${SESSION}providers: [provider-mock]
tools: [tool-calculator]
limits: { max_iterations: 1, on_limit: pause }
`,
  },
];
