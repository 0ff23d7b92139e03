/* SPDX-License-Identifier: MIT */
/* Console logs: every shape of line that console.def knows, what surrounds them, and what is none. */
#define _GNU_SOURCE
#include "curve/console.h"
#include "support/curves.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

Suite *suite_console(void);

static struct curves c;

static void setup(void)
{
	curves_init(&c);
}

static void teardown(void)
{
	curves_release(&c);
}

/* Trainers ------------------------------------------------------------------------------------- */

#define BAR "\xe2\x96\x88\xe2\x96\x88"

static const struct line_case {
	const char *trainer, *text, *series, *points;
	enum curve_role role;
	enum curve_unit unit;
	enum curve_mean mean;
} line_cases[] = {
	/* Megatron-LM of 2019: no samples. */
	{"Megatron-LM",
		" iteration      100/  320000 | elapsed time per iteration (ms): 612.9 | learning rate 1.500E-04 | lm loss 7.123456E+00 | loss scale 65536.0 |\n"
		" iteration      200/  320000 | elapsed time per iteration (ms): 612.9 | learning rate: 1.5E-04 | lm loss: 6.5E+00 | loss scale: 65536.0 |\n",
		"lm loss", "100:7.123456 200:6.5", CURVE_LOSS, CURVE_STEPS, CURVE_OF_INTERVAL},
	/* 2.5 to core 0.7, with srun's and torchrun's labels. */
	{"Megatron-LM",
		"12: [default7]: iteration       10/ 3125000 | consumed samples:          960 | elapsed time per iteration (ms): 5231.0 | learning rate: 4.438E-07 | global batch size:    96 | lm loss: 1.010967E+01 | loss scale: 4096.0 | grad norm: 178.553 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
		"lm loss", "10:10.10967", CURVE_LOSS, CURVE_STEPS, CURVE_OF_INTERVAL},
	/* 2026: microseconds, power, samples that are skipped. */
	{"Megatron-LM",
		"[default0]: [2026-09-11 12:06:52.987995] iteration        1/ 7629408 | consumed samples:           32 | skipped samples:            4 | elapsed time per iteration (ms): 24379.9 | throughput per GPU (TFLOP/s/GPU): 26.8 | energy per GPU (J/iter/GPU): 120.1 | power per GPU (W/GPU): 350.2 | learning rate: 1.406250E-04 | global batch size:    32 | lm loss: 1.107468E+01 | mtp_1 loss: 1.2E+01 | load_balancing_loss: 1.0E+00 | loss scale: 1.0 | grad norm: 30.066 | num zeros: 1299 | params norm: 496.206 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
		"consumed samples", "1:32", CURVE_SAMPLE_COUNT, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"Megatron-LM",
		"-----\n validation loss at iteration 500 on validation set | lm loss value: 2.345678E+00 | lm loss PPL: 1.043E+01 | \n-----\n",
		"lm loss validation", "500:2.345678", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Megatron-LM",
		" valid loss at iteration 500 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | \n",
		"lm loss validation", "500:2.5", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Megatron-LM",
		" validation-code loss at iteration 500 | lm loss value: 1.5E+00 | lm loss PPL: 4.5E+00 | \n",
		"lm loss validation-code", "500:1.5", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Megatron-LM",
		" iteration      311/  500000 | consumed samples:      311 | consumed tokens:       636928 | elapsed time per iteration (s): 2.31 | learning rate: 4.339E-05 | global batch size:     1 | lm loss: 7.220541E+00 | loss scale: 1.0 | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 0.433 | tokens per gpu per second (tgs): 886.1 | TFLOPs: 5.1 |\n",
		"consumed tokens", "311:636928", CURVE_TOKEN_COUNT, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"GPT-NeoX",
		" samples/sec: 51.234 | iteration       10/      50 | elapsed time per iteration (ms): 19987.6 | learning rate: 1.234E-04 | approx flops per GPU: 150.3TFLOPS | lm_loss: 7.123456E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
		"lm_loss", "10:7.123456", CURVE_LOSS, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"GPT-NeoX",
		" validation results at iteration 100 | lm_loss value: 6.912345E+00 | lm_loss_ppl value: 1.004E+03 | \n",
		"lm loss validation", "100:6.912345", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanotron",
		"03/12/2024 12:00:01 [INFO|DP=0|PP=0|TP=0|node-4]: iteration: 10 / 100 | consumed_tokens: 1.05M | time_per_iteration_ms: 1.2K | tokens_per_sec: 87.4K | global_batch_size: 105K | lm_loss: 7.1 | lr: 0.0003 | grad_norm: 1.2 | eta: 0:01:48\n",
		"lm_loss", "10:7.1", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanotron", "[INFO]: iteration: 10 / 100 | consumed_tokens: 1.05M | lm_loss: 7.1 | lr: 0.0003\n",
		"consumed_tokens", "10:1050000", CURVE_TOKEN_COUNT, CURVE_STEPS, CURVE_OF_STEP},
	{"DeepSpeed",
		"[2024-04-04 09:10:13,619] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=2, lr=[0.0002999, 0.0002], mom=[(0.9, 0.999), (0.9, 0.999)]\n",
		"lr", "20:0.0002999", CURVE_LR, CURVE_STEPS, CURVE_OF_STEP},
	{"DeepSpeed", "steps: 10 loss: 2.1234 aux_loss: 0.0101 iter time (s): 1.234 samples/sec: 12.345\n",
		"loss", "10:2.1234", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"torchtitan",
		"[rank0]:[titan] 2025-06-01 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.81234  \x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[38;2;54;234;195mmemory: 12.30GiB(15.40%)  \x1b[34mtps: 12,345  \x1b[36mtflops: 123.45  \x1b[35mmfu: 12.34%\x1b[39m\n",
		"loss", "10:7.81234", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"torchtitan",
		"[titan] 2025-06-01 10:00:00,123 - root - INFO - validate step: 10  loss:  7.5000  memory: 12.30GiB(15.40%)  tps: 12,345\n",
		"loss validation", "10:7.5", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanoGPT", "iter 0: loss 10.9884, time 1234.56ms, mfu -100.00%\niter 10: loss 9.5, time 99.00ms, mfu 12.34%\n",
		"loss", "1:10.9884 11:9.5", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanoGPT", "step 1000: train loss 2.1000, val loss 2.2000\n", "val loss", "1000:2.2",
		CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"modded-nanogpt",
		"step:1/1530 train_loss:10.8258 train_time:31769ms step_avg:nanms\nstep:125/1530 val_loss:4.4164 train_time:16544ms step_avg:143.86ms\nstep:126/1530 train_time:16600ms step_avg:143.86ms\n",
		"train_loss", "1:10.8258", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"llm.c", "s:0 tel:10.968871\ns:0 trl:10.9656\ns:58 trl:8.2239 lr:0.000051 norm:1.69\n",
		"train loss", "1:10.9656 59:8.2239", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"llm.c", "s:0 tel:10.968871\ns:0 trl:10.9656\n", "validation loss", "0:10.96887",
		CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"llm.c",
		"step    3/18865 | loss 11.009001 (+nanz)| norm 10.5000 (+nanz)| lr 8.57e-07 | 1234.56 ms | 45.6% bf16 MFU | 425000 tok/s\n",
		"norm", "3:10.5", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_STEP},
	{"llm.c", "step    4/10 | train loss 4.366221 | norm 1.1000 | lr 1.00e-04 | (123.45 ms | 512 tok/s)\n",
		"train loss", "4:4.366221", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | train_inner | {\"epoch\": 1, \"update\": 0.01, \"loss\": \"12.3\", \"ppl\": \"5042.8\", \"wps\": \"100000\", \"bsz\": \"512\", \"num_updates\": \"100\", \"lr\": \"1.2e-05\", \"gnorm\": \"2.1\", \"loss_scale\": \"4\", \"wall\": \"300\"}\n",
		"loss", "100:12.3", CURVE_LOSS, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | valid | {\"epoch\": 1, \"valid_loss\": \"9.75\", \"valid_ppl\": \"861\", \"valid_num_updates\": \"200\"}\n",
		"valid_loss", "200:9.75", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | train_inner | epoch 001:    100 / 1000 loss=12.3, nll_loss=11.9, ppl=3821, wps=1e5, num_updates=100, lr=1.2e-05, gnorm=2.1, loss_scale=128, train_wall=30\n",
		"gnorm", "100:2.1", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5.25 | nll_loss 4.5 | ppl 22.6 | wps 1e5 | num_updates 1000 | best_loss 5.25\n",
		"valid_loss", "1000:5.25", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Transformers",
		"{'loss': 0.2381, 'grad_norm': 0.6312, 'learning_rate': 1.95e-05, 'epoch': 0.05}\n{'eval_loss': 0.3, 'eval_runtime': 1.2, 'epoch': 0.05}\n",
		"loss", "0.05:0.2381", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_INTERVAL},
	{"Transformers",
		"{'loss': '2.381', 'grad_norm': '0.6312', 'learning_rate': '1.95e-05', 'epoch': '0.05'}\n",
		"learning_rate", "0.05:1.95e-05", CURVE_LR, CURVE_EPOCHS, CURVE_OF_INTERVAL},
	{"Transformers",
		"{'train_runtime': 919.097, 'train_samples_per_second': 1.088, 'train_loss': 0.51, 'epoch': 3.0}\n",
		"train_loss", "3:0.51", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_ALL},
	{"Lightning",
		"Epoch 3:  42%|" BAR "    | 210/500 [00:10<00:14, 20.50it/s, v_num=7, train_loss=0.300]\r"
		"Epoch 3:  43%|" BAR "    | 215/500 [00:10<00:14, 20.50it/s, v_num=7, train_loss=0.310]\n",
		"train_loss", "3.42:0.3 3.43:0.31", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_STEP},
	{"Keras",
		"Epoch 3/10\n\r  1/400 [......] - ETA: 1:00 - loss: 2.3000 - accuracy: 0.1000\b\b\b\r200/400 [====>...] - ETA: 0s - loss: 1.5000 - accuracy: 0.5000\r400/400 [======] - 2s 5ms/step - loss: 1.2500 - accuracy: 0.6000 - val_loss: 1.3000\n",
		"loss", "2.0025:2.3 2.5:1.5 3:1.25", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_EPOCH},
	{"Keras",
		"Epoch 1/2\n\x1b[1m400/400\x1b[0m \x1b[32m----\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m 2ms/step - accuracy: 0.6 - loss: 1.2500 - val_loss: 1.3000\n",
		"val_loss", "1:1.3", CURVE_VALID_LOSS, CURVE_EPOCHS, CURVE_OF_EPOCH},
	{"OLMo",
		"2024-02-01 10:00:00.123\tnode-1:0\tolmo.train:967\tINFO\t[step=1000/739328,epoch=0]\n    optim/total_grad_norm=0.3501\n    train/CrossEntropyLoss=2.345\n    train/Perplexity=10.43\n    throughput/total_tokens=4,194,304,000\n    System/Peak GPU Memory (MB)=41,234\n",
		"train/CrossEntropyLoss", "1000:2.345", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"OLMo",
		"[rank0]: 2025-02-01 10:00:00.123\tnode-1:0\tolmo_core.train:55\tINFO\t[step=10/1000,epoch=1,eta=1h2m]\n[rank0]:     train/CE loss=2.345\n[rank0]:     train/PPL=10.43\n[rank0]:     optim/total grad norm=1.250\n",
		"optim/total grad norm", "10:1.25", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_STEP},
	{"Composer",
		"[batch=10/100]:\n\t Train time/batch: 9\n\t Train loss/train/total: 2.3000\n\t Train lr-DecoupledAdamW/group0: 0.0003\n[batch=11/100]:\n\t Train loss/train/total: 2.2500\n",
		"loss/train/total", "10:2.3 11:2.25", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Composer", "[epoch=2][batch=25/100]:\n\t Train loss/train/total: 2.3000\n",
		"loss/train/total", "1.25:2.3", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_STEP},
	{"Composer", "[token=4096/100000]:\n\t Train loss/train/total: 2.3000\n",
		"loss/train/total", "4096:2.3", CURVE_LOSS, CURVE_TOKENS, CURVE_OF_STEP},
	{"Composer",
		"[metric][batch=9]: time/token: 4096 \n[metric][batch=9]: loss/train/total: 2.3000 \n[metric][batch=10]: loss/train/total: 2.2000 \n",
		"loss/train/total", "10:2.3 11:2.2", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
};

START_TEST(reads_what_every_trainer_prints)
{
	const struct line_case *k = &line_cases[_i];

	curves_text(&c, "train.out", k->text);
	ck_assert_str_eq(c.log.files.items[0].format, "console");
	ck_assert_str_eq(c.log.files.items[0].writer, k->trainer);
	ck_assert_str_eq(curves_points(&c, k->series), k->points);
	const struct curve_series *s = curves_find(&c, k->series);
	ck_assert_int_eq(s->role, k->role);
	ck_assert_int_eq(s->unit, k->unit);
	ck_assert_int_eq(s->mean, k->mean);
	ck_assert_uint_eq(c.log.lost, 0);
}
END_TEST

START_TEST(recognises_every_trainer_by_its_lines)
{
	const struct line_case *k = &line_cases[_i];

	ck_assert_str_eq(curve_recognise("slurm-1.out", k->text, strlen(k->text)), "console");
}
END_TEST

Suite *suite_console(void)
{
	Suite *s = suite_create("console");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(
		t, reads_what_every_trainer_prints, 0, sizeof line_cases / sizeof *line_cases);
	tcase_add_loop_test(t, recognises_every_trainer_by_its_lines, 0,
		sizeof line_cases / sizeof *line_cases);
	suite_add_tcase(s, t);
	return s;
}
