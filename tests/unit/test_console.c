/* SPDX-License-Identifier: MIT */
/* Console logs: every shape of line that console.def knows, what surrounds them, and what is none.
 */
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
		"consumed samples", "1:32", CURVE_SAMPLE_COUNT, CURVE_STEPS, CURVE_OF_STEP},
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
		"consumed tokens", "311:636928", CURVE_TOKEN_COUNT, CURVE_STEPS, CURVE_OF_STEP},
	{"GPT-NeoX",
		" samples/sec: 51.234 | iteration       10/      50 | elapsed time per iteration (ms): 19987.6 | learning rate: 1.234E-04 | approx flops per GPU: 150.3TFLOPS | lm_loss: 7.123456E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
		"lm_loss", "10:7.123456", CURVE_LOSS, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"GPT-NeoX",
		" validation results at iteration 100 | lm_loss value: 6.912345E+00 | lm_loss_ppl value: 1.004E+03 | \n",
		"lm loss validation", "100:6.912345", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanotron",
		"03/12/2024 12:00:01 [INFO|DP=0|PP=0|TP=0|node-4]: iteration: 10 / 100 | consumed_tokens: 1.05M | time_per_iteration_ms: 1.2K | tokens_per_sec: 87.4K | global_batch_size: 105K | lm_loss: 7.1 | lr: 0.0003 | grad_norm: 1.2 | eta: 0:01:48\n",
		"lm_loss", "10:7.1", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanotron",
		"[INFO]: iteration: 10 / 100 | consumed_tokens: 1.05M | lm_loss: 7.1 | lr: 0.0003\n",
		"consumed_tokens", "10:1050000", CURVE_TOKEN_COUNT, CURVE_STEPS, CURVE_OF_STEP},
	{"DeepSpeed",
		"[2024-04-04 09:10:13,619] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=2, lr=[0.0002999, 0.0002], mom=[(0.9, 0.999), (0.9, 0.999)]\n",
		"lr", "20:0.0002999", CURVE_LR, CURVE_STEPS, CURVE_OF_STEP},
	{"DeepSpeed",
		"steps: 10 loss: 2.1234 aux_loss: 0.0101 iter time (s): 1.234 samples/sec: 12.345\n",
		"loss", "10:2.1234", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"torchtitan",
		"[rank0]:[titan] 2025-06-01 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.81234  \x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[38;2;54;234;195mmemory: 12.30GiB(15.40%)  \x1b[34mtps: 12,345  \x1b[36mtflops: 123.45  \x1b[35mmfu: 12.34%\x1b[39m\n",
		"loss", "10:7.81234", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"torchtitan",
		"[titan] 2025-06-01 10:00:00,123 - root - INFO - validate step: 10  loss:  7.5000  memory: 12.30GiB(15.40%)  tps: 12,345\n",
		"loss validation", "10:7.5", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanoGPT",
		"iter 0: loss 10.9884, time 1234.56ms, mfu -100.00%\niter 10: loss 9.5, time 99.00ms, mfu 12.34%\n",
		"loss", "1:10.9884 11:9.5", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"nanoGPT", "step 1000: train loss 2.1000, val loss 2.2000\n", "val loss", "1000:2.2",
		CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"build-nanoGPT",
		"0 val 10.9310\n0 hella 0.2413\n0 train 10.934416\n1 train 10.883945\n2 train 5 test\n",
		"train loss", "1:10.93442 2:10.88395", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"build-nanoGPT",
		"validation loss: 11.0864\nstep     0 | loss: 11.087302 | lr 8.3916e-07 | norm: 23.1795 | dt: 22621.26ms | tok/sec: 23176.78\n",
		"norm", "1:23.1795", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_STEP},
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
	{"llm.c",
		"step    4/10 | train loss 4.366221 | norm 1.1000 | lr 1.00e-04 | (123.45 ms | 512 tok/s)\n",
		"train loss", "4:4.366221", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | train_inner | {\"epoch\": 1, \"update\": 0.01, \"loss\": \"12.3\", \"ppl\": \"5042.8\", \"wps\": \"100000\", \"bsz\": \"512\", \"num_updates\": \"100\", \"lr\": \"1.2e-05\", \"gnorm\": \"2.1\", \"loss_scale\": \"4\", \"wall\": \"300\"}\n",
		"loss", "100:12.3", CURVE_LOSS, CURVE_STEPS, CURVE_OF_INTERVAL},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | valid | {\"epoch\": 1, \"valid_loss\": \"9.75\", \"valid_ppl\": \"861\", \"valid_num_updates\": \"200\"}\n",
		"valid_loss", "200:9.75", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | train_inner | epoch 001:    100 / 1000 loss=12.3, nll_loss=11.9, ppl=3821, wps=1e5, num_updates=100, lr=1.2e-05, gnorm=2.1, loss_scale=128, train_wall=30\n",
		"gnorm", "100:2.1", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_STEP},
	{"fairseq",
		"2022-01-01 00:00:00 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5.25 | nll_loss 4.5 | ppl 22.6 | wps 1e5 | num_updates 1000 | best_loss 5.25\n",
		"valid_loss", "1000:5.25", CURVE_VALID_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Transformers",
		"{'loss': 0.2381, 'grad_norm': 0.6312, 'learning_rate': 1.95e-05, 'epoch': 0.05}\n{'eval_loss': 0.3, 'eval_runtime': 1.2, 'epoch': 0.05}\n",
		"loss", "0.05:0.2381", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_INTERVAL},
	{"Transformers",
		"{'loss': '2.381', 'grad_norm': '0.6312', 'learning_rate': '1.95e-05', 'epoch': '0.05'}\n",
		"learning_rate", "0.05:1.95e-05", CURVE_LR, CURVE_EPOCHS, CURVE_OF_STEP},
	{"Transformers",
		"{'train_runtime': 919.097, 'train_samples_per_second': 1.088, 'train_loss': 0.51, 'epoch': 3.0}\n",
		"train_loss", "3:0.51", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_ALL},
	{"Lightning",
		"Epoch 3:  42%|" BAR
		"    | 210/500 [00:10<00:14, 20.50it/s, v_num=7, train_loss=0.300]\r"
		"Epoch 3:  43%|" BAR
		"    | 215/500 [00:10<00:14, 20.50it/s, v_num=7, train_loss=0.310]\n",
		"train_loss", "3.42:0.3 3.43:0.31", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_STEP},
	/* Version 1: the loss before v_num is a running mean. */
	{"Lightning", "Epoch 3:   0%|          | 4/16 [00:00<?, ?it/s, loss=3.46, v_num=0]\n",
		"loss", "3.25:3.46", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_UNKNOWN},
	{"tqdm", "epoch 1/10:  85%|" BAR " | 500/2000 [30:12<05:21,  1.26it/s, loss=0.0421]\n",
		"loss", "0.25:0.0421", CURVE_LOSS, CURVE_EPOCHS, CURVE_OF_STEP},
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
		"[2024-04-17 09:42:38] INFO     [olmo.train:816, rank=0] [step=2/739328]\n    train/CrossEntropyLoss=10.73\n    train/Perplexity=45,773\n",
		"train/CrossEntropyLoss", "2:10.73", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"OLMo",
		"[rank0]: 2025-02-01 10:00:00.123\tnode-1:0\tolmo_core.train:55\tINFO\t[step=10/1000,epoch=1,eta=1h2m]\n[rank0]:     train/CE loss=2.345\n[rank0]:     train/PPL=10.43\n[rank0]:     optim/total grad norm=1.250\n",
		"optim/total grad norm", "10:1.25", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_STEP},
	{"Composer",
		"[batch=10/100]:\n\t Train time/batch: 9\n\t Train loss/train/total: 2.3000\n\t Train lr-DecoupledAdamW/group0: 0.0003\n[batch=11/100]:\n\t Train loss/train/total: 2.2500\n",
		"loss/train/total", "10:2.3 11:2.25", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	{"Composer", "[epoch=2][batch=25/100]:\n\t Train loss/train/total: 2.3000\n",
		"loss/train/total", "125:2.3", CURVE_LOSS, CURVE_STEPS, CURVE_OF_STEP},
	/* What is measured behind a batch is logged at the next one's number, its loss at its own.
	 */
	{"Composer",
		"[metric][batch=8]: loss/train/total: 2.3000 \n[metric][batch=9]: lr-DecoupledAdamW/group0: 0.0003 \n[metric][batch=9]: l2_norm/grad/global: 1.5000 \n",
		"l2_norm/grad/global", "9:1.5", CURVE_GRAD_NORM, CURVE_STEPS, CURVE_OF_STEP},
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

/* What surrounds them -------------------------------------------------------------------------- */

#define MEGATRON(iteration, rest)                                                                  \
	" iteration " iteration "/     500 | consumed samples:   100 | learning rate: 1.0E-04 | "  \
	"global batch size:     4 | " rest

START_TEST(takes_a_missing_loss_for_nan_only_where_nothing_else_explains_it)
{
	/* Not known to be printed yet; all skipped; some skipped; none; not said. */
	curves_text(&c, "a.out",
		MEGATRON("  10",
			"loss scale: 1.0 | number of skipped iterations:   0 |\n") MEGATRON("  20",
			"lm loss: 2.5E+00 | loss scale: 1.0 | number of skipped iterations:   0 |\n")
			MEGATRON("  30", "loss scale: 1.0 | number of skipped iterations:  10 |\n")
				MEGATRON("  40",
					"loss scale: 1.0 | number of skipped iterations:   3 |\n")
					MEGATRON("  50",
						"loss scale: 1.0 | number of skipped iterations:   0 |\n")
						MEGATRON("  60", "loss scale: 1.0 |\n"));
	ck_assert_str_eq(curves_points(&c, "lm loss"), "20:2.5 40:nan 50:nan");
	ck_assert_str_eq(
		curves_marks(&c), "skipped steps 30 10 \"\" @16\nskipped steps 40 3 \"\" @21\n");
	ck_assert_ptr_nonnull(strstr(c.log.files.items[0].note, "taken for NaN"));
}
END_TEST

START_TEST(counts_skipped_iterations_from_the_loaded_one)
{
	/* Of the 3 iterations since the checkpoint all were skipped. */
	curves_text(&c, "a.out",
		MEGATRON(" 100", "lm loss: 2.5E+00 | number of skipped iterations:   0 |\n") "  successfully loaded checkpoint from /ck [ t 1/1, p 1/1 ] at iteration 67\n" MEGATRON(
			"  70", "number of skipped iterations:   3 |\n"));
	ck_assert_str_eq(curves_points(&c, "lm loss"), "100:2.5");
	ck_assert_str_eq(
		curves_marks(&c), "loaded steps 67 nan \"/ck\" @5\nskipped steps 70 3 \"\" @9\n");
}
END_TEST

START_TEST(reads_nan_and_inf_that_are_printed)
{
	curves_text(&c, "a.out",
		MEGATRON("  10", "lm loss: nan | number of skipped iterations:   0 |\n")
			MEGATRON("  11", "lm loss: INF | number of skipped iterations:   0 |\n"));
	ck_assert_str_eq(curves_points(&c, "lm loss"), "10:nan 11:inf");
}
END_TEST

static const struct mark_case {
	const char *text, *marks;
} mark_cases[] = {
	{"using world size: 8, data-parallel-size: 2\n> setting random seeds to 1234 ...\n",
		"launch steps nan nan \"\" @0\nsetting steps nan nan \"seed=1234\" @0\n"},
	{"------------------------ arguments ------------------------\n"
	 "  adam_beta1 ...................................... 0.9\n"
	 "  data_path ....................................... ['/data/a b', '0.5']\n"
	 "  lr .............................................. 0.0003\n"
	 "  lr .............................................. 0.0003\n",
		"launch steps nan nan \"\" @0\nsetting steps nan nan \"data_path=['/data/a b', '0.5']\" @0\n"
		"setting steps nan nan \"lr=0.0003\" @0\n"},
	{"  lr .......................... 0.0006......updated\n",
		"setting steps nan nan \"lr=0.0006\" @0\n"},
	{"[2021-05-25 06:38:26,358] [INFO] [config.py:752:print]   train_batch_size ............. 64\n",
		"setting steps nan nan \"train_batch_size=64\" @0\n"},
	{"  successfully loaded checkpoint from /a/b at iteration 1000\n",
		"loaded steps 1000 nan \"/a/b\" @0\n"},
	{"  successfully saved checkpoint at iteration    1000 to /a/b\n",
		"saved steps 1000 nan \"/a/b\" @0\n"},
	{"  [2026-09-11 12:06:52.987995] successfully saved checkpoint from iteration    2000 to /a/b [ t 1/1, p 1/1 ]\n",
		"saved steps 2000 nan \"/a/b\" @0\n"},
	{"  successfully loaded /ck/global_step500/mp_rank_00_model_states.pt\n"
	 "  successfully loaded /ck/global_step500/mp_rank_01_model_states.pt\n",
		"loaded steps 500 nan \"/ck/global_step500/mp_rank_00_model_states.pt\" @0\n"},
	{"[2022-01-01 00:00:00,000] [INFO] [torch_checkpoint_engine.py:33:commit] [Torch] Saved /ck/global_step500/zero_pp_rank_0_mp_rank_00_optim_states.pt.\n",
		"saved steps 500 nan \"/ck/global_step500/zero_pp_rank_0_mp_rank_00_optim_states.pt\" @0\n"},
	{"[exiting program at iteration 500] datetime: 2022-01-01 10:00:00 \n",
		"finished steps nan nan \"\" @0\n"},
	/* DeepSpeed 0.19: a row of step 0 while the engine is made, before anything is loaded. */
	{"[2026-11-30 01:19:05,855] [INFO] [logging.py:123:log_dist] [Rank 0] step=0, skipped=0, lr=[0.0], mom=[(0.9, 0.999)]\n"
	 "[2026-11-30 01:19:05,866] [INFO] [logging.py:123:log_dist] [Rank 0] [Torch] Begin Load checkpoint from ck/global_step10/mp_rank_00_model_states.pt...\n"
	 "[2026-11-30 01:19:05,869] [INFO] [logging.py:123:log_dist] [Rank 0] [Torch] End Load checkpoint from ck/global_step10/mp_rank_00_model_states.pt...\n"
	 "[2026-11-30 01:19:05,911] [INFO] [logging.py:123:log_dist] [Rank 0] Saving model checkpoint: ck/global_step20/mp_rank_00_model_states.pt\n",
		"launch steps nan nan \"\" @0\nloaded steps 10 nan \"ck/global_step10/mp_rank_00_model_states.pt\" @0\n"
		"saved steps 20 nan \"ck/global_step20/mp_rank_00_model_states.pt\" @0\n"},
	{"[hyperparameter]: composer_version: \"0.32.1\" \n[hyperparameter]: rank_zero_seed: 3 \n",
		"launch steps nan nan \"\" @0\nsetting steps nan nan \"seed=3\" @0\n"},
	{"slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2021-05-26T10:00:00 DUE TO TIME LIMIT ***\n",
		"killed steps nan nan \"\" @0\n"},
	{"[2021-05-26 04:56:04,854] [INFO] [stage3.py:2708:_overflow_clean_up] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
	 "[2021-05-26 04:56:04,854] [INFO] [stage3.py:2708:_overflow_clean_up] [deepspeed] OVERFLOW! Rank 1 Skipping step. Attempted loss scale: 65536, reducing to 32768\n",
		"overflow steps nan 32768 \"\" @0\n"},
	{"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1\n",
		"skipped steps nan 1 \"\" @0\n"},
	{"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0\n",
		"overflow steps nan 16384 \"\" @0\n"},
	{"2022-01-01 00:00:00 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 64.0\n",
		"overflow steps nan 64 \"\" @0\n"},
	{"2022-01-01 00:00:00 | INFO | fairseq.trainer | Loaded checkpoint /ck/checkpoint_last.pt (epoch 3 @ 1000 updates)\n",
		"loaded steps 1000 nan \"/ck/checkpoint_last.pt\" @0\n"},
	{"2022-01-01 00:00:00 | INFO | x | Saved checkpoint /ck/checkpoint_1_500.pt (epoch 1 @ 500 updates, score 5.1) (writing took 1.2 seconds)\n",
		"saved steps 500 nan \"/ck/checkpoint_1_500.pt\" @0\n"},
	{"INFO:trainer:***** Running training *****\nINFO:trainer:  Num examples = 1,000\n"
	 "INFO:trainer:  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
	 "INFO:trainer:  Total optimization steps = 1,500\n"
	 "INFO:trainer:  Continuing training from global step 500\n"
	 "INFO:trainer:Saving model checkpoint to out/checkpoint-750\n",
		"launch steps nan nan \"\" @0\nsetting steps nan nan \"total_train_batch_size=64\" @0\n"
		"setting steps nan nan \"max_steps=1,500\" @0\nloaded steps 500 nan \"\" @0\n"
		"saved steps 750 nan \"out/checkpoint-750\" @0\n"},
	{"[titan] 2025-06-01 10:00:00,123 - root - INFO - Training starts at step 1\n"
	 "[titan] 2025-06-01 10:00:00,123 - root - INFO - Training starts at step 501\n",
		"loaded steps 500 nan \"\" @0\n"},
	{"[INFO]: mbs: 1 | grad_accum: 2 | train_steps: 100 | start_iteration_step: 0 | consumed_tokens_total: 0\n"
	 "[INFO]: mbs: 1 | grad_accum: 2 | train_steps: 100 | start_iteration_step: 50 | consumed_tokens_total: 9\n",
		"launch steps nan nan \"\" @0\nloaded steps 50 nan \"\" @0\n"},
	{"2024-02-01 10:00:00.123\tn:0\tx\tINFO\tLoading checkpoint from /ck/step1000-unsharded...\n"
	 "2024-02-01 10:00:00.123\tn:0\tx\tINFO\tCheckpoint saved to /ck/step2000\n",
		"loaded steps 1000 nan \"/ck/step1000-unsharded\" @0\nsaved steps 2000 nan \"/ck/step2000\" @0\n"},
	{"Restoring states from the checkpoint path at logs/epoch=3-step=1200.ckpt\n",
		"loaded steps 1200 nan \"logs/epoch=3-step=1200.ckpt\" @0\n"},
	{"resumed from checkpoint out/step-400.pt at step 400\nsaved checkpoint out/step-500.pt\n",
		"loaded steps 400 nan \"out/step-400.pt\" @0\nsaved steps 500 nan \"out/step-500.pt\" @0\n"},
	{"Resuming from checkpoint opt_step-15611\n",
		"loaded steps 15611 nan \"opt_step-15611\" @0\n"},
	{"Resuming training from out-shakespeare\n",
		"launch steps nan nan \"\" @0\nloaded steps nan nan \"out-shakespeare\" @0\n"},
	{"Epoch 1/10\nEpoch 2/10\n", "epoch epochs 0 1 \"\" @0\nepoch epochs 1 2 \"\" @0\n"},
	/* Near misses. */
	{"Loading checkpoint from the hub\nLoaded checkpoint shards\nsaving checkpoint to out\n"
	 "training on our cluster\nDownloading....\nEpoch 1/10: 3 it/s\n"
	 "saving checkpoint at iteration 500 to /a\niter 0: loss 10.9, time 1ms\n",
		""},
};

START_TEST(says_what_processes_did)
{
	curves_text(&c, "a.out", mark_cases[_i].text);
	ck_assert_str_eq(curves_marks(&c), mark_cases[_i].marks);
}
END_TEST

START_TEST(says_a_launch_once_and_again_after_points)
{
	curves_text(&c, "a.out",
		"using world size: 8\nusing world size: 8\n> setting random seeds to 1 ...\n" MEGATRON(
			" 1",
			"lm loss: 2.5E+00 | number of skipped iterations:   0 |\n") "using world size: 8\nusing world size: 8\n> setting random seeds to 1 ...\n");
	ck_assert_str_eq(curves_marks(&c),
		"launch steps nan nan \"\" @0\nsetting steps nan nan \"seed=1\" @0\n"
		"launch steps nan nan \"\" @5\nsetting steps nan nan \"seed=1\" @5\n");
}
END_TEST

START_TEST(says_a_save_without_a_step_at_the_newest_point)
{
	curves_text(
		&c, "a.out", "step 250: train loss 2.1, val loss 2.2\nsaving checkpoint to out\n");
	ck_assert_str_eq(curves_marks(&c), "saved steps 250 nan \"out\" @2\n");
}
END_TEST

START_TEST(tells_ranks_that_print_the_same_apart)
{
	curves_text(&c, "a.out",
		"[rank1]:[titan] x - root - INFO - step: 10  loss: 2.10000  grad_norm: 1.0\n"
		"[rank0]:[titan] x - root - INFO - step: 10  loss: 2.00000  grad_norm: 1.0\n"
		"[rank0]:[titan] x - root - INFO - step: 20  loss: 1.90000  grad_norm: 1.0\n"
		"[rank2]:[titan] x - root - INFO - step: 20  loss: -1.00000  grad_norm: 1.0\n");
	ck_assert_str_eq(curves_series(&c),
		"loss loss steps step 1\ngrad_norm grad-norm steps step 1\nloss loss steps step 2\n"
		"grad_norm grad-norm steps step 2\ngrad_norm grad-norm steps step 1\n");
	ck_assert_int_eq(c.log.series.items[0].rank, 1);
	ck_assert_int_eq(c.log.series.items[2].rank, 0);
}
END_TEST

START_TEST(keeps_what_ranks_print_below_each_other_together)
{
	curves_text(&c, "a.out",
		"[rank0]: INFO\t[step=1/9,epoch=1]\n[rank1]: INFO\t[step=1/9,epoch=1]\n"
		"[rank0]:     train/CE loss=3.5\n[rank1]: INFO chatter\n"
		"[rank0]:     optim/total grad norm=1.5\n[rank0]: chatter\n"
		"[rank0]:     train/CE loss=9.9\n");
	ck_assert_str_eq(curves_points(&c, "train/CE loss"), "1:3.5");
	ck_assert_str_eq(curves_points(&c, "optim/total grad norm"), "1:1.5");
}
END_TEST

START_TEST(puts_an_evaluation_at_the_newest_point)
{
	curves_text(&c, "a.out",
		"[batch=10/100]:\n\t Train loss/train/total: 2.3000\n[Eval batch=1/2] Eval on eval data\n"
		"[Eval batch=2/2] Eval on eval data:\n\t Eval metrics/eval/CrossEntropy: 2.5000\n"
		"\t Eval loss/eval/total: 2.4000\n");
	ck_assert_str_eq(curves_points(&c, "loss/eval/total"), "10:2.4");
}
END_TEST

START_TEST(reads_two_formats_and_two_launches_in_one_file)
{
	curves_text(&c, "a.out",
		"DeepSpeed info: version=0.3.17\n"
		"[2021-05-26 04:00:00,000] [Rank 0] step=1, skipped=0, lr=[0.1], mom=[0.9]\n" MEGATRON(
			"   1",
			"lm loss: 2.5E+00 | number of skipped iterations:   0 |\n") "DeepSpeed info: version=0.3.17\n" MEGATRON("   1",
			"lm loss: 2.6E+00 | number of skipped iterations:   0 |\n"));
	ck_assert_str_eq(c.log.files.items[0].writer, "DeepSpeed, Megatron-LM");
	ck_assert_str_eq(curves_points(&c, "lm loss"), "1:2.5 1:2.6");
	ck_assert_str_eq(
		curves_marks(&c), "launch steps nan nan \"\" @0\nlaunch steps nan nan \"\" @7\n");
}
END_TEST

START_TEST(reads_a_dictionary_that_shares_its_line_with_progress_bars)
{
	curves_text(&c, "a.out",
		"  5%|" BAR "   | 50/1000 [00:10<03:00,  5.2it/s]\r                    \r"
		"{'loss': 2.5, 'learning_rate': 0.0001, 'epoch': 0.25}\n"
		"\r  5%|" BAR "   | 50/1000 [00:10<03:00,  5.2it/s]"
		"{'loss': 2.25, 'learning_rate': 0.0001, 'epoch': 0.5}\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "0.25:2.5 0.5:2.25");
}
END_TEST

#define STEP_BAR(n) "\r 25%|" BAR "   | " n "/24 [00:01<00:04,  3.77it/s]"
#define ROW(loss, epoch) "\r          \r{'loss': " loss ", 'epoch': " epoch "}\n"

START_TEST(tells_the_steps_of_epochs_by_the_progress_bar)
{
	/* Epochs of 8 steps; of the second launch the bar after the first row is lost. */
	curves_text(&c, "a.out",
		STEP_BAR("1") ROW("2.5", "0.25") STEP_BAR("2") ROW("2.25", "0.5") STEP_BAR("4")
			STEP_BAR("5") "\n***** Running training *****\n" ROW(
				"2.0", "0.38") "killed\n" ROW("1.5", "0.5") STEP_BAR("4"));
	ck_assert_str_eq(curves_points(&c, "loss"), "2:2.5 4:2.25 3:2 4:1.5");
	ck_assert_int_eq(curves_find(&c, "loss")->unit, CURVE_STEPS);
	ck_assert_ptr_nonnull(strstr(c.log.files.items[0].note, "progress bar"));
}
END_TEST

static const char *const stepless[] = {
	/* No bars. */
	ROW("2.5", "0.25") ROW("2.25", "0.5"),
	/* Rows that came in a block, so that the bar behind the last one is of another time. */
	ROW("2.5", "0.25") ROW("2.25", "0.5") STEP_BAR("20") ROW("2.0", "0.75") STEP_BAR("22"),
	/* Two decimals leave open which of many steps it was. */
	ROW("2.5", "0.25") ROW("2.25", "0.5") "\r 25%|" BAR
					      " | 4000/24000 [00:01<00:04,  3.77it/s]",
	/* The bar of a save, and no other: Trainer with disable_tqdm. */
	ROW("2.5", "0.25")
		ROW("2.25", "0.5") "\rWriting model shards: 100%|" BAR
				   "| 1/1 [00:00<00:00, 879.86it/s]\n" ROW("2.0", "0.75"),
	ROW("2.5", "0.25") ROW("2.25", "0.5") "\r  0%|" BAR "| 0/1 [00:00<?, ?it/s]\n",
	/* Two epochs at one step. */
	ROW("2.5", "0.25") ROW("2.25", "0.26") "\r 25%|" BAR "| 1/24 [00:01<00:04,  3.77it/s]",
	/* A row before the first bar of its launch. */
	ROW("2.5", "0.25") STEP_BAR("2") "***** Running training *****\n" ROW("2.5", "0.25"),
};

START_TEST(leaves_epochs_where_no_step_is_certain)
{
	curves_text(&c, "a.out", stepless[_i]);
	ck_assert_int_eq(curves_find(&c, "loss")->unit, CURVE_EPOCHS);
	ck_assert_msg(strncmp(curves_points(&c, "loss"), "0.25:2.5", 8) == 0, "%s", c.text);
	ck_assert_str_eq(c.log.files.items[0].note, "");
}
END_TEST

/* What real frameworks printed, of two launches of which the second goes on from step 12. */
START_TEST(reads_what_transformers_really_print)
{
	static const char *const paths[] = {"fixtures/curve/console/transformers-5.24.0/train.log",
		"fixtures/curve/console/transformers-4.57.6/train.log"};
	int last = 0;

	curves_path(&c, paths[_i]);
	ck_assert_int_eq(sscanf(curves_points(&c, "loss"),
				 "2:%*f 4:%*f 6:%*f 8:%*f 10:%*f 12:%*f 14:%*f 16:%*f 14:%*f "
				 "16:%*f 18:%*f 20:%*f 22:%*f %d:",
				 &last),
		1);
	ck_assert_int_eq(last, 24);
	ck_assert_uint_eq(curves_find(&c, "loss")->points, 14);
	ck_assert_int_eq(
		sscanf(curves_points(&c, "eval_loss"), "6:%*f 12:%*f 18:%*f %d:", &last), 1);
	ck_assert_int_eq(last, 24);
	const char *marks = curves_marks(&c);
	static const char *const said[] = {"launch steps nan nan \"\" @0\n",
		"setting steps nan nan \"total_train_batch_size=8\" @0\n",
		"saved steps 12 nan \"out/checkpoint-12\" @20\n", "launch steps nan nan \"\" @26\n",
		"loaded steps 12 nan \"\" @26\n", "finished steps nan nan \"\" @"};
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		ck_assert_msg(strstr(marks, said[i]), "%s is not in %s", said[i], marks);
	ck_assert_uint_eq(c.log.lost, 0);
}
END_TEST

START_TEST(reads_what_lightning_really_prints)
{
	curves_path(&c, "fixtures/curve/console/lightning-2.6.6/train.log");
	/*
	 * Epochs of 8 batches: 17 before the end. Behind the checkpoint the rest of its epoch is
	 * not shown. A bar at a new place shows the old value first.
	 */
	ck_assert_uint_eq(curves_find(&c, "train_loss_step")->points, 17 + 8);
	const char *points = curves_points(&c, "train_loss_step");
	ck_assert_msg(strncmp(points, "0.125:0.929 0.25:1.15 ", 22) == 0, "%s", points);
	ck_assert_ptr_nonnull(strstr(points, " 2.125:0.412 2.125:0.414 2.25:0.654 "));
	ck_assert_str_eq(curves_points(&c, "train_loss_epoch"), "1:0.986 2:0.697 2:0.638 3:0.547");
	ck_assert_str_eq(curves_marks(&c),
		"launch steps nan nan \"\" @0\nlaunch steps nan nan \"\" @21\n"
		"loaded epochs 1.5 nan \"ck/epoch=1-step=12.ckpt\" @21\nfinished steps nan nan \"\" @32\n");
}
END_TEST

START_TEST(reads_what_nanogpt_really_prints)
{
	curves_path(&c, "fixtures/curve/console/nanogpt-3adf61e/train.log");
	ck_assert_uint_eq(curves_find(&c, "loss")->points, 14 + 11);
	ck_assert_ptr_nonnull(strstr(curves_points(&c, "loss"), " 14:"));
	ck_assert_uint_eq(curves_find(&c, "val loss")->points, 3 + 3);
	const char *marks = curves_marks(&c);
	ck_assert_msg(strstr(marks, "saved steps 10 nan \"out\" @"), "%s", marks);
	ck_assert_msg(strstr(marks, "loaded steps nan nan \"out\" @"), "%s", marks);
}
END_TEST

START_TEST(says_that_losses_are_in_bits)
{
	curves_text(&c, "a.out",
		"| INFO | train_inner | epoch 001:    100 / 1000 loss=12.3, num_updates=100, lr=0.1\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "100:12.3");
	ck_assert_ptr_nonnull(strstr(c.log.files.items[0].note, "bits"));
}
END_TEST

START_TEST(says_how_exact_numbers_are)
{
	curves_text(&c, "a.out",
		"[INFO]: iteration: 10 / 100 | lm_loss: 7.1 | lr: 0.0003 | grad_norm: 12\n"
		"{'loss': 2.5, 'learning_rate': 0.0001, 'epoch': 0.25}\n"
		"{'loss': '12.5', 'learning_rate': '0.0001', 'epoch': '0.25'}\n"
		"iter 0: loss 10.9000, time 1ms\n");
	const struct curve_point *p = c.log.points.items;
	ck_assert_float_eq_tol(p[0].resolution, 0.01f, 1e-6f);
	ck_assert_float_eq_tol(p[1].resolution, 1e-6f, 1e-9f);
	ck_assert_float_eq_tol(p[2].resolution, 0.1f, 1e-6f);
	ck_assert_float_eq_tol(p[3].resolution, 1e-4f, 1e-7f);
	ck_assert_float_eq_tol(p[5].resolution, 0.01f, 1e-6f);
	ck_assert_float_eq_tol(p[7].resolution, 1e-4f, 1e-7f);
}
END_TEST

static const struct clock_case {
	const char *text;
	double clock;
} clock_cases[] = {
	{"[2026-09-11 12:06:52.5] x", 1789128412.5},
	{"[2021-05-26 04:56:04,250] [INFO]", 1622004964.25},
	{"2024-02-29T23:59:59Z x", 1709251199},
	{"2024-02-29T23:59:59+02:00 x", 1709243999},
	{"2024-02-29 23:59:59,5-0130 x", 1709256599.5},
	{"03/12/2024 12:00:01 [INFO|", 1710244801},
	{"13/12/2024 12:00:01 [INFO|", 1734091201},
	{"2024/03/12 12:00:01 x", 1710244801},
	{"10:00:00 then 1970-01-01 00:00:01", 1},
	{"2024-13-01 00:00:00", NAN},
	{"2024-01-01 24:00:00", NAN},
	{"12024-01-01 10:00:00", NAN},
	{"2024-01-01", NAN},
	{"no time", NAN},
};

START_TEST(reads_clocks)
{
	const struct clock_case *k = &clock_cases[_i];
	double clock = console_clock((struct slice){k->text, strlen(k->text)});

	if (isnan(k->clock))
		ck_assert_msg(isnan(clock), "%s: %.3f", k->text, clock);
	else
		ck_assert_msg(fabs(clock - k->clock) < 1e-6, "%s: %.3f", k->text, clock);
}
END_TEST

START_TEST(gives_points_the_clock_of_their_line)
{
	curves_text(&c, "a.out",
		"2024-02-29T23:59:59Z\tINFO\t[step=1/9,epoch=1]\n    train/CE loss=3.5\n"
		"iter 0: loss 10.9000, time 1ms\n");
	ck_assert_double_eq_tol(c.log.points.items[0].wall, 1709251199, 1e-3);
	ck_assert_double_nan(c.log.points.items[1].wall);
}
END_TEST

/* Others --------------------------------------------------------------------------------------- */

static const struct guess_case {
	const char *text, *series, *points;
	enum curve_unit unit;
} guess_cases[] = {
	{"epoch 3 step 100 loss 2.3\n", "loss", "100:2.3", CURVE_STEPS},
	{"Epoch: 3, Step: 100, Train Loss: 2.3, LR: 1e-4\n", "Loss", "100:2.3", CURVE_STEPS},
	{"Epoch [3/10], Step [150/600], Loss: 0.5000\n", "Loss", "3.25:0.5", CURVE_EPOCHS},
	{"INFO step=100 train/loss=2.5 grad_norm=1.5\n", "train/loss", "100:2.5", CURVE_STEPS},
	{"INFO step=100 train/loss=2.5 grad_norm=1.5\n", "grad_norm", "100:1.5", CURVE_STEPS},
	{"Epoch 4: train_loss=0.25 val_loss=0.5\n", "val_loss", "4:0.5", CURVE_EPOCHS},
	{"2021-02-22 08:40:43,913 epoch 2 - iter 50/200 - loss 14.25 - samples/sec: 19.11 - lr: 0.0005\n",
		"loss", "2.25:14.25", CURVE_EPOCHS},
	{"Steps:   1%|" BAR " | 10/1000 [00:01<01:00,  1.26it/s, lr=1e-05, step_loss=0.12]\n",
		"step_loss", "10:0.12", CURVE_STEPS},
	{"global_step: 7 | epoch: 1 | loss: nan\n", "loss", "7:nan", CURVE_STEPS},
};

START_TEST(guesses_where_no_trainer_is_known)
{
	const struct guess_case *k = &guess_cases[_i];

	curves_text(&c, "train.log", k->text);
	ck_assert_str_eq(curves_points(&c, k->series), k->points);
	ck_assert_int_eq(curves_find(&c, k->series)->unit, k->unit);
	ck_assert_ptr_nonnull(strstr(c.log.files.items[0].note, "guessed"));
	/* Only where the user named the file. */
	ck_assert_ptr_null(curve_recognise("train.log", k->text, strlen(k->text)));
}
END_TEST

START_TEST(guesses_nothing_in_files_of_known_trainers)
{
	curves_text(&c, "a.out",
		"iter 0: loss 10.9000, time 1ms, mfu -100.00%\nepoch 3 step 100 loss 2.3\n");
	ck_assert_str_eq(curves_points(&c, "loss"), "1:10.9");
}
END_TEST

static const char *const chatter[] = {
	"stepping through: loss of generality\n",
	"print0(f\"step:{step}/{train_steps} val_loss:{val_loss:.4f} train_time:{t:.0f}ms\")\n",
	" iteration {:8d}/{:8d} | lm loss: {:.6E} |\n",
	"after 1 iterations memory (MB) | allocated: 12335.4 | max allocated: 19976.0\n",
	"time (ms) | forward-compute: 211.64 | backward-compute: 293.57 | optimizer: 103.82\n",
	"scheduler_params ... {'warmup_min_lr': 0, 'lr': 5e-05, 'epoch': 'x'}\n",
	"micro_step:10/20 train_loss:1.5\n",
	"Sanity Checking DataLoader 0:  50%|#  | 1/2 [00:00<00:00, 20.50it/s, v_num=7]\n",
	"[step=five/10,epoch=0]\n    train/CE loss=2.0\n",
	"iteration 10/ 100 of warm-up\n",
};

START_TEST(takes_no_points_from_chatter)
{
	struct slice text = slice_of(chatter[_i]);

	ck_assert_int_lt(curve_open_memory(&c.log, "a.out", text, &c.options, &c.e), 0);
	ck_assert_msg(strstr(c.e.text, "is no loss log"), "%s", c.e.text);
}
END_TEST

START_TEST(does_not_take_documents_that_quote_logs_for_logs)
{
	const char *text =
		MEGATRON("   1", "lm loss: 2.5E+00 | number of skipped iterations: 0 |\n");

	ck_assert_ptr_null(curve_recognise("chronicles.md", text, strlen(text)));
	ck_assert_str_eq(curve_recognise("run.log", text, strlen(text)), "console");
	curves_text(&c, "chronicles.md", text);
	ck_assert_str_eq(curves_points(&c, "lm loss"), "1:2.5");
}
END_TEST

/* Files in a folder, by lines that come late; other names and lines of nobody are not searched. */
START_TEST(finds_logs_in_a_folder_by_lines_that_come_late)
{
	static const char *const names[] = {"slurm-1.out", "notes", "other.log"};
	char root[] = "/tmp/reprise-console-XXXXXX", path[64], command[64];

	ck_assert_ptr_nonnull(mkdtemp(root));
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", root, names[i]);
		FILE *f = fopen(path, "w");
		ck_assert_ptr_nonnull(f);
		for (int k = 0; k < 5000; k++)
			fputs("++ module load python cuda nccl\n", f);
		fputs(i < 2 ? "iter 4: loss 3.5, time 1ms\n" : "step 3 loss 2\n", f);
		ck_assert_int_eq(fclose(f), 0);
	}
	curves_path(&c, root);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
	ck_assert_uint_eq(c.log.files.count, 1);
	ck_assert_str_eq(curves_points(&c, "loss"), "5:3.5");
}
END_TEST

/* Where a folder holds no log that is known, what a script printed is the log, by its file's name.
 */
START_TEST(takes_output_of_ones_own_script_in_a_folder)
{
	static const char *const names[] = {"train.log", "notes"};
	char root[] = "/tmp/reprise-console-XXXXXX", path[64], command[64];

	ck_assert_ptr_nonnull(mkdtemp(root));
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", root, names[i]);
		FILE *f = fopen(path, "w");
		ck_assert_ptr_nonnull(f);
		fputs("hello\nstep=3 loss=2.5\nstep=4 loss=2.25\n", f);
		ck_assert_int_eq(fclose(f), 0);
	}
	curves_path(&c, root);
	snprintf(command, sizeof command, "rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
	ck_assert_uint_eq(c.log.files.count, 1);
	ck_assert_str_eq(curves_points(&c, "loss"), "3:2.5 4:2.25");
}
END_TEST

START_TEST(leaves_binary_files_and_json_lines_alone)
{
	const char *json = "{\"epoch\": 1, \"loss\": \"12.3\", \"num_updates\": \"100\"}\n";

	ck_assert_ptr_null(curve_recognise("x", "iter 0: loss 1.0, time\0 1ms\n", 27));
	ck_assert_str_eq(curve_recognise("x.jsonl", json, strlen(json)), "jsonl");
}
END_TEST

START_TEST(takes_series_by_patterns_of_the_user)
{
	const struct curve_pattern patterns[] = {{"loss", "it ([0-9]+) .*err=([0-9.]+)"},
		{"temperature", "T=([0-9]+)K"}, {"grad-norm", "gn ([0-9.]+)"}};
	const char *text =
		"it 5 ok err=2.50\nT=300K\niter 0: loss 10.9, time 1ms\nit 6 ok err=x\n"
		"it 7 ok err=2.25 T=301K\nstep 9 gn 1.5\ngn 1.6\nstep 10 gn 1.7\nstep 11 gn 1";

	c.options.patterns = patterns;
	c.options.pattern_count = 3;
	curves_text(&c, "a.out", text);
	/* The user's loss stands instead of the trainer's. */
	ck_assert_str_eq(curves_points(&c, "loss"), "5:2.5 7:2.25");
	ck_assert_int_eq(curves_find(&c, "loss")->unit, CURVE_STEPS);
	ck_assert_str_eq(curves_points(&c, "temperature"), "1:300 2:301");
	ck_assert_int_eq(curves_find(&c, "temperature")->unit, CURVE_CALLS);
	/* A word says where it stands. */
	ck_assert_str_eq(curves_points(&c, "grad-norm"), "9:1.5 10:1.7");
	ck_assert_int_eq(curves_find(&c, "grad-norm")->unit, CURVE_STEPS);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_pattern)
{
	const struct curve_pattern pattern = {"loss", "err=([0-9.]+"};

	c.options.patterns = &pattern;
	c.options.pattern_count = 1;
	curves_text(&c, "a.out", "err=1.5\niter 0: loss 10.9, time 1ms\n");
	ck_assert(curves_lost(&c, "the pattern of the series loss"));
	ck_assert_str_eq(curves_points(&c, "loss"), "1:10.9");
}
END_TEST

static const struct cut_case {
	const char *text, *series, *points;
	bool torn;
} cut_cases[] = {
	{MEGATRON("  10", "lm loss: 2.5"), "lm loss", "", true},
	{MEGATRON("  10", "lm loss: 2.5E+00 | loss sc"), "lm loss", "10:2.5", false},
	{MEGATRON("  10", "lm loss: 2.5E+00 | loss scale: 1"), "lm loss", "10:2.5", true},
	{"iter 0: loss 1.5, time 1ms\niter 1: loss 1.2", "loss", "1:1.5", true},
	{"{'loss': 2.5, 'epoch': 0.25}\n{'loss': 2.4, 'epoch': 0.5", "loss", "0.25:2.5", true},
	{"{'loss': 2.5, 'epoch': 0.25}\n{'loss': 2.4, 'epoch': 0.5}", "loss", "0.25:2.5 0.5:2.4",
		false},
	{"[batch=1/9]:\n\t Train loss/train/total: 2.5\n[batch=2/9]:\n\t Train loss/train/total: 2",
		"loss/train/total", "1:2.5", true},
	{"Epoch 0:  50%|" BAR "| 4/8 [00:00<00:01,  3.9it/s, v_num=0, train_loss=0.5]\r"
	 "Epoch 0:  63%|" BAR "| 5/8 [00:00<00:01,  3.9it/s, v_num=0, train_loss=0.",
		"train_loss", "0.5:0.5", true},
};

START_TEST(takes_nothing_that_the_end_of_the_file_may_have_cut_off)
{
	const struct cut_case *k = &cut_cases[_i];

	curves_text(&c, "a.out", k->text);
	ck_assert_str_eq(curves_points(&c, k->series), k->points);
	ck_assert_int_eq(c.log.files.items[0].torn, k->torn);
}
END_TEST

START_TEST(takes_no_step_of_a_mark_that_is_cut_off)
{
	curves_text(&c, "a.out",
		MEGATRON("  10",
			"lm loss: 2.5E+00 |\n") "  successfully saved checkpoint at iteration    1");
	ck_assert_str_eq(curves_marks(&c), "");
}
END_TEST

/* Size ----------------------------------------------------------------------------------------- */

START_TEST(reads_progress_bars_of_any_length_in_pieces)
{
	const size_t bars = 60000;
	char *text = malloc(bars * 100), *to = text, last[32];

	for (size_t i = 1; i <= bars; i++)
		to += sprintf(to,
			"Epoch 0:  42%%|" BAR
			"    | %zu/%zu [00:10<00:14, 20.50it/s, v_num=7, train_loss=%.3f]\r",
			i, bars, 1 + (double)(i % 7) / 8);
	memcpy(to - 1, "\niter 4: loss 3.5, time 1ms\n", 29);
	c.limits.line_bytes = 3 << 20;
	curves_text(&c, "a.out", text);
	free(text);
	ck_assert_uint_eq(curves_find(&c, "train_loss")->points, bars);
	ck_assert_uint_eq(c.log.lost, 0);
	/* All of it is one line. */
	ck_assert_uint_eq(c.log.points.items[bars - 1].at, 1);
	ck_assert_uint_eq(c.log.points.items[bars].at, 2);
	ck_assert_uint_eq(c.log.files.items[0].lines, 2);
	snprintf(last, sizeof last, "5:3.5");
	ck_assert_str_eq(curves_points(&c, "loss"), last);
}
END_TEST

START_TEST(passes_over_a_line_that_is_too_long)
{
	size_t n = 3 << 20;
	char *text = malloc(n + 64);

	memset(text, 'x', n);
	memcpy(text + n, "\niter 4: loss 3.5, time 1ms\n", 29);
	c.limits.line_bytes = 1 << 20;
	curves_text(&c, "a.out", text);
	free(text);
	ck_assert_uint_eq(c.log.lost, 1);
	ck_assert(curves_lost(&c, "longer than 1048576 bytes"));
	ck_assert_str_eq(curves_points(&c, "loss"), "5:3.5");
}
END_TEST

/* Lines like those before them ----------------------------------------------------------------- */

/* What stands where a number of `from` does, in one copy of it. */
static size_t put_number(char *to, const char *from, size_t n)
{
	static const char *const others[] = {"nan", "-1", "12,345", "1e-05", "0", "7.25", "1e999",
		"123456789012345678", "-0.5", "inf", "12,34"};

	if (lrand48() % 16 == 0) {
		const char *other = others[lrand48() % (long)(sizeof others / sizeof *others)];
		memcpy(to, other, strlen(other));
		return strlen(other);
	}
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] == '.' ? '.'
				       : (char)('0' + (i > 0 ? lrand48() % 10 : 1 + lrand48() % 9));
	return n;
}

/* `copies` of a text one below the other, with other numbers. */
static char *vary(const char *text, int copies)
{
	char *all = malloc((size_t)copies * (8 * strlen(text) + 1)), *to = all;

	for (int i = 0; i < copies; i++)
		for (const char *p = text; *p;) {
			size_t n = i > 0 ? strspn(p, "0123456789.") : 0;
			to += n > 0 ? put_number(to, p, n) : 1;
			if (n == 0)
				to[-1] = *p;
			p += n > 0 ? n : 1;
		}
	*to = '\0';
	return all;
}

/* A row that has the form of one before is read in one pass. A pattern that matches nothing keeps
 * the reader from it, so that each line is taken apart. */
START_TEST(reads_rows_like_others_as_each_of_them_alone)
{
	static const struct curve_pattern nothing = {"nothing", "(no such line)"};

	srand48(_i + 1);
	c.options.others = true;
	for (int round = 0; round < 20; round++) {
		char *text = vary(line_cases[_i].text, 12), marks[sizeof c.text];
		curves_text(&c, "train.out", text);
		char *points = curves_all(&c);
		memcpy(marks, curves_marks(&c), sizeof marks);
		uint64_t lost = c.log.lost;
		c.options.patterns = &nothing;
		c.options.pattern_count = 1;
		curves_text(&c, "train.out", text);
		char *expected = curves_all(&c);
		ck_assert_msg(strcmp(points, expected) == 0, "round %d", round);
		ck_assert_str_eq(marks, curves_marks(&c));
		ck_assert_uint_eq(lost, c.log.lost);
		c.options.pattern_count = 0;
		free(expected);
		free(points);
		free(text);
	}
}
END_TEST

/* What forms rest on: see console_form.c. */
START_TEST(has_no_key_that_depends_on_numbers)
{
	struct console_index *x = malloc(sizeof *x);

	console_index_init(x);
	ck_assert(x->steady_keys);
	free(x);
}
END_TEST

/* Keys are found wherever they stand, and only they. */
START_TEST(finds_keys_at_every_place)
{
	static const struct slice keys[] = {
		{"iteration", 9}, {"iter ", 5}, {"step:", 5}, {"validate step:", 14}};
	struct console_keys *k = malloc(sizeof *k);
	struct console_hit hits[CONSOLE_HITS_MAX];
	char text[64];

	console_keys_init(k, keys, 4);
	for (size_t i = 0; i < 4; i++)
		for (size_t at = 0; at + keys[i].n <= sizeof text; at++) {
			memset(text, '.', sizeof text);
			memcpy(text + at, keys[i].p, keys[i].n);
			/* No byte behind the text counts. */
			ck_assert_uint_eq(console_keys_find(k,
						  (struct slice){text, at + keys[i].n - 1}, hits),
				0);
			size_t n = console_keys_find(k, (struct slice){text, sizeof text}, hits);
			ck_assert_uint_eq(n, i == 3 ? 2 : 1);
			ck_assert_uint_eq(hits[0].key, i);
			ck_assert_uint_eq(hits[0].at, at);
		}
	free(k);
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
	tcase_add_test(t, takes_a_missing_loss_for_nan_only_where_nothing_else_explains_it);
	tcase_add_test(t, counts_skipped_iterations_from_the_loaded_one);
	tcase_add_test(t, reads_nan_and_inf_that_are_printed);
	tcase_add_loop_test(t, says_what_processes_did, 0, sizeof mark_cases / sizeof *mark_cases);
	tcase_add_test(t, says_a_launch_once_and_again_after_points);
	tcase_add_test(t, says_a_save_without_a_step_at_the_newest_point);
	tcase_add_test(t, tells_ranks_that_print_the_same_apart);
	tcase_add_test(t, keeps_what_ranks_print_below_each_other_together);
	tcase_add_test(t, puts_an_evaluation_at_the_newest_point);
	tcase_add_test(t, reads_two_formats_and_two_launches_in_one_file);
	tcase_add_test(t, reads_a_dictionary_that_shares_its_line_with_progress_bars);
	tcase_add_test(t, tells_the_steps_of_epochs_by_the_progress_bar);
	tcase_add_loop_test(
		t, leaves_epochs_where_no_step_is_certain, 0, sizeof stepless / sizeof *stepless);
	tcase_add_loop_test(t, reads_what_transformers_really_print, 0, 2);
	tcase_add_test(t, reads_what_lightning_really_prints);
	tcase_add_test(t, reads_what_nanogpt_really_prints);
	tcase_add_test(t, says_that_losses_are_in_bits);
	tcase_add_test(t, says_how_exact_numbers_are);
	tcase_add_loop_test(t, reads_clocks, 0, sizeof clock_cases / sizeof *clock_cases);
	tcase_add_test(t, gives_points_the_clock_of_their_line);
	tcase_add_loop_test(
		t, guesses_where_no_trainer_is_known, 0, sizeof guess_cases / sizeof *guess_cases);
	tcase_add_test(t, guesses_nothing_in_files_of_known_trainers);
	tcase_add_loop_test(t, takes_no_points_from_chatter, 0, sizeof chatter / sizeof *chatter);
	tcase_add_test(t, does_not_take_documents_that_quote_logs_for_logs);
	tcase_add_test(t, finds_logs_in_a_folder_by_lines_that_come_late);
	tcase_add_test(t, takes_output_of_ones_own_script_in_a_folder);
	tcase_add_test(t, leaves_binary_files_and_json_lines_alone);
	tcase_add_test(t, takes_series_by_patterns_of_the_user);
	tcase_add_test(t, says_what_is_wrong_with_a_pattern);
	tcase_add_loop_test(t, takes_nothing_that_the_end_of_the_file_may_have_cut_off, 0,
		sizeof cut_cases / sizeof *cut_cases);
	tcase_add_test(t, takes_no_step_of_a_mark_that_is_cut_off);
	tcase_add_test(t, reads_progress_bars_of_any_length_in_pieces);
	tcase_add_test(t, passes_over_a_line_that_is_too_long);
	tcase_add_loop_test(t, reads_rows_like_others_as_each_of_them_alone, 0,
		sizeof line_cases / sizeof *line_cases);
	tcase_add_test(t, has_no_key_that_depends_on_numbers);
	tcase_add_test(t, finds_keys_at_every_place);
	suite_add_tcase(s, t);
	return s;
}
