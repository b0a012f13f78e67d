from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import openai

from refold.core.counting import CharCounter
from refold.testing.provider import ScriptedProvider


class Watched:
    per_conversation = 0

    def __init__(self):
        self.counted = Counter()

    def text(self, text):
        return CharCounter().text(text)

    def message(self, message):
        self.counted[message.id] += 1
        return CharCounter().message(message)

    def tools(self, schema):
        return CharCounter().tools(schema)


def test_every_message_of_a_growing_conversation_is_counted_once():
    counter, messages = Watched(), []
    with (
        ScriptedProvider(counter=counter) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="k") as client,
    ):
        for turn in range(40):
            messages.append({"role": "user", "content": f"Question {turn}"})
            said = client.chat.completions.create(model="m", messages=messages).choices[0].message
            messages.append({"role": "assistant", "content": said.content})
    prompts = [times for id, times in counter.counted.items() if id]  # answers have none
    assert prompts == [1] * 79
    sizes = [each.tokens for each in provider.received]
    assert sizes == sorted(sizes)


def test_many_clients_at_once_get_every_answer():
    def behave(received):
        return received.messages[-1].parts[0].text.upper()

    with (
        ScriptedProvider(behave=behave) as provider,
        openai.OpenAI(base_url=provider.openai_url, api_key="k") as client,
        ThreadPoolExecutor(16) as pool,
    ):

        def ask(number):
            messages = [{"role": "user", "content": f"number {number}"}]
            return client.chat.completions.create(model="m", messages=messages).choices[0].message.content

        said = list(pool.map(ask, range(100)))
    assert said == [f"NUMBER {number}" for number in range(100)]
    assert sorted(each.number for each in provider.received) == list(range(1, 101))
